"""kernels.py SASS [early]: the registers of each kernel in nvdisasm's text.

With "early", exits 1 unless each kernel lets the next launch begin (PREEXIT) and waits for the one before (ACQBULK)
before it touches memory or ends.
"""

import re
import sys

text = open(sys.argv[1]).read()
registers = dict(re.findall(r"EIATTR_REGCOUNT.*?index@\((\w+)\).*?\.word\s+(0x[0-9a-f]+)", text, re.DOTALL))
kernels = re.findall(r"^\.text\.(\w+):\n(.*?)(?=^//-----|\Z)", text, re.MULTILINE | re.DOTALL)
for name, body in kernels:
    code = re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z][A-Z0-9.]*)", body)
    print(f"{name}: {int(registers[name], 16)} registers")
    if "early" not in sys.argv:
        continue
    if "PREEXIT" not in code or "ACQBULK" not in code:
        sys.exit(f"{name}: begins late, or does not wait")
    before = code[: code.index("ACQBULK")]
    touches = [i for i in before if re.match(r"(LDG|LD|LDGSTS|STG|ST|RED|ATOMG?|EXIT)(\.|$)", i)]
    if touches or "PREEXIT" not in before:
        sys.exit(f"{name}: {touches} before it waits")
