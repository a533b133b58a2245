/* A compiled model inside a C program.
 *
 *   tenon compile models/smollm2-135m-instruct.yaml --emit=lib -o libsmollm2.so
 *   cc embed.c -I$PREFIX/include -L. -l:libsmollm2.so -Wl,-rpath,'$ORIGIN' -o embed
 *   ./embed "The capital of France is" */
#include <stdio.h>
#include <string.h>
#include <tenon.h>

static int print_text(void *user, int32_t token, const char *text, int64_t bytes) {
  (void)user, (void)token;
  fwrite(text, 1, (size_t)bytes, stdout);
  return fflush(stdout); /* anything but 0 ends the generation */
}

static int fail(void) {
  fprintf(stderr, "embed: %s\n", tenon_last_error());
  return 1;
}

int main(int argc, char **argv) {
  const char *prompt = argc > 1 ? argv[1] : "The capital of France is";
  tenon_generate_options options = {.max_tokens = 64};
  tenon_model *model;
  int32_t ids[1024];
  if (tenon_open(TENON_API_VERSION, NULL, NULL, &model) != 0)
    return fail();
  int64_t count = tenon_tokenize(model, prompt, (int64_t)strlen(prompt), ids, 1024);
  if (count < 0 || count > 1024)
    return count < 0 ? fail() : (fputs("embed: the prompt is too long\n", stderr), 1);
  if (tenon_generate(model, ids, count, &options, print_text, NULL) < 0)
    return fail();
  putchar('\n');
  tenon_close(model);
  return 0;
}
