// The contract between compiled programs, kernels and the runtime. Plain C, no includes beyond
// <stdint.h>: kernels (compiled to LLVM bitcode), the runtime and the code generator all read it.
//
//   runtime ──tenon_env──▶ program (@encode / @prefill / @decode) ──shape, io──▶ kernel
//
// Every thread of the team runs the whole program; a kernel cuts its own share of the work from
// (thread, threads). The program puts a barrier between stages that depend on each other.
#ifndef TENON_KERNEL_ABI_H
#define TENON_KERNEL_ABI_H

#include <stdint.h>

#define TENON_KERNEL_ABI 6

// Positions in one block of the paged KV cache.
#define TENON_BLOCK_TOKENS 16

// Neighbouring elements of an int8 cache's rows that share a scale.
#define TENON_CACHE_GROUP 32

// Tokens that @prefill gets at a time on a device, at most.
#define TENON_WAVE_TOKENS 2048

// A ragged batch: T tokens of S sequences lie one after another, without padding.
//
//   sequence 0      sequence 1   sequence 2
//   t0 t1 t2 t3  |  t4        |  t5 t6          starts = {0, 4, 5, 7}
typedef struct tenon_batch {
  int32_t tokens;             // T
  int32_t sequences;          // S
  int32_t scored;             // R: rows whose logits are wanted
  int32_t max_blocks;         // row stride of block_table
  const int32_t *ids;         // [T] token ids
  const int32_t *positions;   // [T] position of each token in its sequence, from 0
  const int32_t *sequence_of; // [T] sequence index of each token
  const int32_t *starts;      // [S + 1] first token of each sequence
  const int32_t *lengths; // [S] cached positions of each sequence once this step is done, however
                          // many batches it takes
  const int32_t *block_table; // [S, max_blocks] physical block of each logical block
  const int32_t *scored_rows; // [R] token rows to be scored, ascending
  const int32_t *types;       // [T] token types; null where the model has none
  // A decoder's view of what @encode made of its sequences, the memory: blocks of the second pool.
  // @encode itself sees that pool's blocks as its own, in block_table.
  const int32_t *memory_lengths; // [S] positions; null without an encoder
  const int32_t *memory_table;   // [S, memory_max_blocks]
  int32_t memory_max_blocks;
} tenon_batch;

struct tenon_env;

// Element types of a plain matrix product offered by the runtime.
typedef enum tenon_dtype {
  TENON_F32 = 0,
  TENON_BF16 = 1,
  TENON_F16 = 2,
  TENON_I8 = 3,
} tenon_dtype;

// What the runtime offers to kernels. Pointers may be null where stated.
typedef struct tenon_services {
  // Waits until all threads of the team have called it.
  void (*barrier)(const struct tenon_env *env);
  // c[m, n] (f32, row stride ldc) = a[m, k] (lda) · b[k, n] (ldb); a and b of type `dtype`,
  // row-major. Runs on the calling thread alone. Returns 0 on success. Null when oneDNN was not
  // found: kernels then use their own loop.
  int (*matmul)(tenon_dtype dtype, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda,
                const void *b, int64_t ldb, float *c, int64_t ldc);
  // Called by every thread when it has done its part of a stage of the program, unless null.
  void (*mark)(const struct tenon_env *env, int32_t stage);
} tenon_services;

typedef struct tenon_env {
  const tenon_batch *batch;
  const tenon_services *services;
  char *scratch;  // of this thread, 64-byte aligned, at least the variant's scratch_bytes
  int32_t thread; // 0 .. threads - 1
  int32_t threads;
  int64_t cache_blocks; // blocks in the KV pool
  void *team;           // the runtime's own; for `barrier`
  // The pool of cross-attention: laid out like the other, with its own sizes. Null without one.
  char *memory_cache;
  int64_t memory_blocks;
  // Scratch of thread t is at scratch + (t - thread) * scratch_stride: others may read it behind a
  // barrier.
  int64_t scratch_stride;
} tenon_env;

// A kernel. `shape` points to a constant struct of the kernel's own (see codegen/cpu/kernels); it
// is a link-time constant, so that every bound in it folds when the kernel is specialised. `io`
// holds one pointer for each operand and then each result: activations point to row 0, column 0 of
// their view (f32, row stride in `shape`), weights to their packed bytes, and a cache operand to
// the pool of its own layer:
//
//   pool of a layer:  k: [kv_heads][cache_blocks][TENON_BLOCK_TOKENS][head_dim]
//                     v: [kv_heads][cache_blocks][TENON_BLOCK_TOKENS][value_dim]
// so that a head's keys in neighbouring blocks are one run of memory. Where a value is the first
// elements of its key there is no v.
//
// With int8 elements the scales (bf16) of a block's rows precede its elements; element d of a row
// is worth scale[d / TENON_CACHE_GROUP] times itself. Keys lie by element, so that what a query is
// multiplied with is the same element of neighbouring keys; those that are values too, and all keys
// on a device, lie by position, as values do:
//
//   block of a head:  k: bf16 [groups][TENON_BLOCK_TOKENS]  int8 [head_dim][TENON_BLOCK_TOKENS]
//                     v: bf16 [groups][TENON_BLOCK_TOKENS]  int8 [TENON_BLOCK_TOKENS][value_dim]
typedef void tenon_kernel(const void *shape, void *const *io, const tenon_env *env);

// A compiled phase. `arena` is T * arena_token_bytes + R * arena_scored_bytes long.
typedef void tenon_program(const tenon_env *env, char *arena, const char *weights, char *cache);

// What a stage of a program costs on paper (codegen/Cost.h), for people who measure it. The rows
// are the batch's tokens, or its scored rows; a pair is one of a query and a key that it may see.
typedef struct tenon_stage {
  const char *kernel;    // "norm_qkv"
  int32_t scored;        // 1: its rows are scored rows
  int32_t barrier;       // 1: threads have met before it
  int64_t weight_bytes;  // read once for all rows
  int64_t context_bytes; // read for each cached position of each sequence
  int64_t row_flops;
  int64_t pair_flops;
} tenon_stage;

typedef struct tenon_stages {
  int64_t count;
  const tenon_stage *list; // in the order of the program
} tenon_stages;

// The same programs for one instruction set; the runtime takes the first whose features the CPU
// has.
//
//                      encode                          prefill, decode
//   decoder            null                            logits of scored rows
//   encoder            logits of scored rows           null
//   encoder-decoder    writes the memory               logits of scored rows, over the memory
//
// Where attention is bidirectional a sequence comes in one batch, with all its tokens.
typedef struct tenon_variant {
  const char *name;       // for people: "x86-64-v4+vnni"
  const char *features;   // comma-separated CPU features it needs, as in /proc/cpuinfo
                          // ("avx512f,avx512_vnni"); may be ""
  tenon_program *prefill; // any tokens for each sequence
  tenon_program *decode;  // exactly one token for each sequence, every row scored
  int64_t scratch_bytes;  // for each thread
  tenon_program *encode;  // whole sequences
} tenon_variant;

// A value in the middle of the model, a row for each token: f32 [T][width] at arena + T * offset.
typedef struct tenon_hidden {
  const char *name; // "hidden.0", "hidden_final"
  int64_t offset;
  int64_t width;
} tenon_hidden;

// A KV cache: how much of a block belongs to each head of each layer.
typedef struct tenon_cache_layout {
  int32_t layers; // 0: there is none
  int32_t heads;
  int64_t key_bytes;   // of the keys of one head in one block
  int64_t value_bytes; // of its values; 0 where they are in the keys
} tenon_cache_layout;

// ── programs for a device ──────────────────────────────────────────────────────────────────────
// A device runs a program as a list of launches, in order: a stage is one or a few of them, and no
// barriers are needed in between. Kernels lie in an image for each architecture.

typedef enum tenon_place {
  TENON_AT_TOKENS = 0,  // arena + T * scale + offset
  TENON_AT_SCORED = 1,  // arena + T * arena_token_bytes + R * scale + offset
  TENON_AT_WEIGHTS = 2, // weights + offset
  TENON_AT_CACHE = 3,   // the KV pool + its blocks * scale
  TENON_AT_MEMORY = 4,  // the pool of cross-attention, likewise
  TENON_AT_DRAWS = 5,   // [R] tenon_draw
  TENON_AT_DRAWN = 6,   // [R] int32_t: the tokens that were drawn
} tenon_place;

// How a device draws a scored row's next token (runtime/Sampler.h). Values are meaningful.
typedef struct tenon_draw {
  int32_t ids;               // 0 .. ids - 1 may be drawn
  int32_t top_k;             // 0: all
  float inverse_temperature; // 0: the best
  float min_p;
  double top_p;
  double random; // in [0, 1)
} tenon_draw;

typedef struct tenon_operand {
  int64_t place; // tenon_place
  int64_t scale;
  int64_t offset;
} tenon_operand;

// What a launch runs on: `columns` blocks wide, and high enough for all rows.
typedef struct tenon_grid {
  int32_t threads; // of a block: a multiple of 32, at most 1024
  int32_t columns;
  int32_t rows_per_block; // 0: one block high
  int32_t rows;           // which are counted: 0: the tokens, 1: the scored rows
  int32_t least_rows;     // there is a launch for so many rows only; 0: no limit
  int32_t most_rows;
  int32_t library_rows;    // so many rows and more are multiplied by the library; 0: never
  int32_t for_library;     // 1: this launch is a part of that; 0: of the other way
  int64_t shared_bytes;    // dynamic shared memory of a block
  int64_t workspace_bytes; // of device memory, and so many more for each row; a stage's launches
  int64_t workspace_row_bytes; // share it
} tenon_grid;

static inline int tenon_is_launched(const tenon_grid *grid, int64_t rows, int has_library) {
  if (grid->library_rows && grid->for_library != (has_library && rows >= grid->library_rows))
    return 0;
  return rows > 0 && rows >= grid->least_rows && (!grid->most_rows || rows <= grid->most_rows);
}
static inline int64_t tenon_grid_height(const tenon_grid *grid, int64_t rows) {
  return grid->rows_per_block ? (rows + grid->rows_per_block - 1) / grid->rows_per_block : 1;
}
static inline int64_t tenon_workspace_bytes(const tenon_grid *grid, int64_t rows) {
  return grid->workspace_bytes + rows * grid->workspace_row_bytes;
}

// A product that the device's library (cuBLASLt) computes: with bf16 or f16 rows x and weights w,
//
//   out [rows, cols] (f32) = x [rows, depth] · w [cols, depth]ᵀ  (+ add [rows, cols])
//
// x lies at the beginning of the workspace.
typedef struct tenon_product {
  int32_t dtype;  // tenon_dtype
  int32_t weight; // operand
  int32_t add;    // operand; -1: none
  int32_t out;    // operand; -1: the workspace, from tenon_product_at on
  int64_t cols;   // 0: this is no product
  int64_t depth;
  int64_t add_stride; // elements from one row to the next
  int64_t out_stride;
} tenon_product;

static inline int64_t tenon_product_at(int64_t rows, int64_t depth) {
  return (rows * depth * 2 + 255) / 256 * 256;
}

// A kernel with its shape, or a product.
typedef struct tenon_device_kernel {
  const char *symbol; // of a product: what to call it
  tenon_grid grid;
  tenon_product product;
} tenon_device_kernel;

typedef struct tenon_launch {
  int32_t kernel;
  int32_t stage;         // of the program
  int64_t operand_count; // at most TENON_LAUNCH_OPERANDS
  const tenon_operand *operands;
} tenon_launch;

typedef struct tenon_launches {
  int64_t count;
  const tenon_launch *list;
} tenon_launches;

#define TENON_LAUNCH_OPERANDS 16

// What a kernel of a device is given. Everything it points to is in the device's memory.
typedef struct tenon_arguments {
  void *io[TENON_LAUNCH_OPERANDS]; // operands and results, as those of a tenon_kernel
  const tenon_batch *batch;
  int64_t cache_blocks;
  int64_t memory_blocks;
  char *workspace; // of the stage
} tenon_arguments;

typedef enum tenon_image_kind {
  TENON_IMAGE_CUBIN = 0,    // for devices of this major version, from this minor one on
  TENON_IMAGE_PTX = 1,      // for devices from this version on
  TENON_IMAGE_EMULATED = 2, // x86 code, for the emulator of Tenon's tests
} tenon_image_kind;

typedef struct tenon_image {
  const char *name;   // "sm_90"
  int32_t kind;       // tenon_image_kind
  int32_t capability; // 10 * major + minor
  const char *bytes;
  int64_t size;
} tenon_image;

typedef struct tenon_device_code {
  int64_t image_count;
  const tenon_image *images; // best first
  int64_t kernel_count;
  const tenon_device_kernel *kernels;
  tenon_launches prefill, decode, encode; // empty where the model has no such phase
  tenon_launches sample;                  // behind prefill or decode: from logits to tokens
  const void *runtime; // the rt::DeviceRuntime that runs it: only such executables contain one
} tenon_device_code;

// What the generated object defines, under the name `tenon_compiled`.
typedef struct tenon_compiled {
  uint32_t abi; // TENON_KERNEL_ABI
  int32_t variant_count;
  const tenon_variant *variants; // best first
  const char *target;            // "cpu" or "reference"
  int32_t max_threads;           // 0: any number; 1: programs are not cut into slices
  int32_t vocab;                 // V, columns of the logits
  int32_t context;               // longest sequence
  int64_t arena_token_bytes;     // A; multiple of 64
  int64_t arena_scored_bytes;    // B; multiple of 64
  // Logits of scored row r: prefill: arena + T * A + R * logits_offset + r * V * 4 (f32)
  // decode keeps them in the same place with R = T.
  int64_t logits_offset;
  tenon_dtype kv_dtype; // the cache's elements
  tenon_cache_layout cache;
  int64_t weight_bytes;     // length of the weights section it expects
  uint8_t weight_digest[8]; // the first bytes of its checksum, so that a foreign section is refused
  // What --emit-hidden lets the caller see, in the order of the computation; 0 without.
  int64_t hidden_count;
  const tenon_hidden *hiddens; // of what gives the logits
  // A sequence that grows beyond so many tokens is computed anew from its first token: its rotary
  // frequencies are others then (longrope). 0: never.
  int32_t recompute_beyond;
  int32_t keys_by_length; // 1: cached keys depend on the length of their sequence, so that none of
                          // its prefixes serves another
  int64_t encoder_hidden_count;
  const tenon_hidden *encoder_hiddens; // of an encoder-decoder's encoder
  // An encoder-decoder's cross-attention. The encoder's tokens have their own ids.
  tenon_cache_layout memory;
  int32_t encoder_vocab; // 0 without an encoder
  int64_t token_types;   // how many there are; 0: the model does not ask
  tenon_stages prefill_stages;
  tenon_stages decode_stages;
  tenon_stages encode_stages;
  const tenon_device_code *device; // null: the programs are those of the variants
} tenon_compiled;

#endif // TENON_KERNEL_ABI_H
