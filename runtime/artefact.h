// The layout of what follows the native code in an executable (or stands in a sidecar file).
//
//   ELF image | padding | weights | tokenizer | meta (JSON) | llm (IR text) | sched (IR text)
//             | section table | trailer
//
// The trailer is the file's last 32 bytes. Everything is little-endian. Weights start at a multiple
// of 4096, or of a huge page if they fill one; all other sections at multiples of 64. With
// --weights-form sidecar the "weights" section is absent and meta names the file instead.
#ifndef TENON_ARTEFACT_H
#define TENON_ARTEFACT_H

#include <stdint.h>

#define TENON_HUGE_PAGE (2 << 20)

#define TENON_ARTEFACT_VERSION 1
#define TENON_ARTEFACT_MAGIC "TENONART"

typedef struct tenon_section {
  char name[16];   // "weights", "tokenizer", "meta", "llm", "sched", "licenses"; zero-padded
  uint64_t offset; // from the start of the file
  uint64_t bytes;
  uint64_t checksum; // tenon_checksum of the bytes
} tenon_section;

typedef struct tenon_trailer {
  uint64_t table_offset; // of the tenon_section array
  uint32_t sections;
  uint32_t version;    // TENON_ARTEFACT_VERSION
  uint64_t file_bytes; // length of the whole file: a truncated or grown file is refused
  char magic[8];       // TENON_ARTEFACT_MAGIC
} tenon_trailer;

// FNV-1a over 8-byte words (the tail padded with zeros). Start with TENON_CHECKSUM_SEED; may be fed
// in pieces whose lengths are multiples of 8.
#define TENON_CHECKSUM_SEED 0xcbf29ce484222325ull
static inline uint64_t tenon_checksum(uint64_t hash, const void *data, uint64_t bytes) {
  const unsigned char *p = (const unsigned char *)data;
  for (; bytes >= 8; p += 8, bytes -= 8) {
    uint64_t word;
    __builtin_memcpy(&word, p, 8);
    hash = (hash ^ word) * 0x100000001b3ull;
  }
  if (bytes) {
    uint64_t word = 0;
    __builtin_memcpy(&word, p, bytes);
    hash = (hash ^ word) * 0x100000001b3ull;
  }
  return hash;
}

#endif // TENON_ARTEFACT_H
