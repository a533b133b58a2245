"""A compiled model inside Python, by ctypes alone.

    tenon compile models/smollm2-135m-instruct.yaml --emit=lib -o libsmollm2.so
    python3 embed.py ./libsmollm2.so "The capital of France is"
"""
import ctypes as c
import sys


class Options(c.Structure):  # tenon_generate_options; zeros are the defaults
    _fields_ = [("max_tokens", c.c_int32), ("ignore_eos", c.c_int32), ("temperature", c.c_double),
                ("top_k", c.c_int32), ("seeded", c.c_int32), ("top_p", c.c_double), ("min_p", c.c_double),
                ("seed", c.c_uint64), ("stop", c.POINTER(c.c_char_p)), ("stop_count", c.c_int64)]


OnToken = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int32, c.POINTER(c.c_char), c.c_int64)


@OnToken
def print_text(user, token, text, size):
    sys.stdout.write(c.string_at(text, size).decode())
    sys.stdout.flush()
    return 0  # anything else ends the generation


lib = c.CDLL(sys.argv[1])
lib.tenon_last_error.restype = c.c_char_p
lib.tenon_tokenize.argtypes = [c.c_void_p, c.c_char_p, c.c_int64, c.POINTER(c.c_int32), c.c_int64]
lib.tenon_tokenize.restype = lib.tenon_generate.restype = c.c_int64
lib.tenon_generate.argtypes = [c.c_void_p, c.POINTER(c.c_int32), c.c_int64, c.POINTER(Options), OnToken, c.c_void_p]
lib.tenon_close.argtypes = [c.c_void_p]


def check(result):
    if result < 0:
        sys.exit("embed: " + lib.tenon_last_error().decode())
    return result


model = c.c_void_p()
check(lib.tenon_open(c.c_uint32(1), None, None, c.byref(model)))
prompt = sys.argv[2].encode()
ids = (c.c_int32 * check(lib.tenon_tokenize(model, prompt, len(prompt), None, 0)))()
lib.tenon_tokenize(model, prompt, len(prompt), ids, len(ids))
check(lib.tenon_generate(model, ids, len(ids), Options(max_tokens=64), print_text, None))
print()
lib.tenon_close(model)
