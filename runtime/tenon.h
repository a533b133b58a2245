/* Tenon's public C ABI: what a model compiled with --emit=lib offers. Plain C, no dependencies.
 *
 *   tenon_model *model;
 *   if (tenon_open(TENON_API_VERSION, NULL, NULL, &model) != 0)
 *     fprintf(stderr, "%s\n", tenon_last_error());
 *
 * Functions return 0 or, where they count, a number >= 0; on failure a negative number, and
 * tenon_last_error() has one line for this thread. Text is UTF-8. A model answers one call at a
 * time. */
#ifndef TENON_H
#define TENON_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_API __attribute__((visibility("default")))
#define TENON_API_VERSION 1

typedef struct tenon_model tenon_model;

/* Zeros are the defaults, everywhere. */
typedef struct tenon_open_options {
  int32_t threads; /* 0: as many as CPUs allowed */
  int32_t pin;     /* bind each thread to its own CPU */
} tenon_open_options;

typedef struct tenon_generate_options {
  int32_t max_tokens; /* 0: as many as the context holds */
  int32_t ignore_eos;
  double temperature; /* 0: always the best token */
  int32_t top_k;      /* 0: off */
  int32_t seeded;     /* use `seed`; otherwise another draw each time */
  double top_p;       /* 0: off */
  double min_p;       /* 0: off */
  uint64_t seed;
  const char *const *stop; /* stop strings beside the model's own */
  int64_t stop_count;
} tenon_generate_options;

/* Called for each token with the text that became certain with it (`bytes` long, maybe 0; a rest at
 * the end has token -1). Return 0 to go on, anything else to end. */
typedef int tenon_on_token(void *user, int32_t token, const char *text, int64_t bytes);

/* `path` is the file that holds the weights; NULL: the library that this function lies in.
 * `options` may be NULL. */
TENON_API int tenon_open(uint32_t api_version, const char *path, const tenon_open_options *options,
                         tenon_model **model);
TENON_API void tenon_close(tenon_model *model);
TENON_API const char *tenon_last_error(void);

/* What the compiler recorded, as JSON; lives as long as the model. */
TENON_API const char *tenon_info(const tenon_model *model);
TENON_API int32_t tenon_vocab(const tenon_model *model);
TENON_API int32_t tenon_context(const tenon_model *model);

/* Both return how much there is and write at most `capacity` of it (ids, or bytes without a final
 * 0). */
TENON_API int64_t tenon_tokenize(tenon_model *model, const char *text, int64_t bytes, int32_t *ids,
                                 int64_t capacity);
TENON_API int64_t tenon_detokenize(tenon_model *model, const int32_t *ids, int64_t count,
                                   char *text, int64_t capacity);

/* Continues `count` ids; returns the number of tokens generated. `options` may be NULL. Where the
 * ids begin as those of an earlier call did, that beginning is not computed again; the answer is
 * the same, bit for bit. */
TENON_API int64_t tenon_generate(tenon_model *model, const int32_t *ids, int64_t count,
                                 const tenon_generate_options *options, tenon_on_token *on_token,
                                 void *user);

/* Writes [count, vocab] logits. */
TENON_API int tenon_logits(tenon_model *model, const int32_t *ids, int64_t count, float *logits);

#ifdef __cplusplus
}
#endif

#endif /* TENON_H */
