// Opening the sections behind an executable: whatever is wrong with the file is told in one line.
#include "runtime/Artefact.h"

#include "Toy.h"
#include "runtime/Compiled.h"
#include "runtime/Error.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace tenon::rt;

namespace {
std::string path(const std::string &name) { return toy::scratchFolder() + "/" + name; }

Artefact open(const std::string &bytes) {
  toy::writeFile(path("model"), bytes);
  return Artefact::open(path("model"), path("model"), tenonCompiled);
}

std::string refusal(const std::string &bytes) {
  try {
    open(bytes);
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ExitRefused);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "accepted";
}

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

const std::string image(5000, 'x'); // stands for the ELF image
} // namespace

TEST(Artefact, FindsItsSections) {
  toy::Sections sections = toy::sections(R"("generation": {"eos": [5, 6], "stop": ["<end>"]})");
  sections.push_back({"llm", "module {}"});
  Artefact artefact = open(toy::append(image, sections));
  EXPECT_EQ(std::memcmp(artefact.weights(), toy::weights(), toy::weightBytes), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(artefact.weights()) % 4096, 0u);
  EXPECT_EQ(artefact.section("llm"), "module {}");
  EXPECT_EQ(artefact.section("sched"), "");
  EXPECT_EQ(artefact.meta().model, "toy");
  EXPECT_EQ(artefact.meta().eos, (std::vector<int32_t>{5, 6}));
  EXPECT_EQ(artefact.meta().stop, std::vector<std::string>{"<end>"});
  artefact.verify();
}

TEST(Artefact, StrippedTruncatedAndGrownFilesAreRefused) {
  const std::string whole = toy::append(image, toy::sections());
  EXPECT_TRUE(contains(refusal(image), "has no weights: it was stripped or truncated"));
  EXPECT_TRUE(contains(refusal(""), "has no weights"));
  EXPECT_TRUE(contains(refusal("x"), "has no weights"));
  for (size_t cut : {size_t(1), size_t(31), size_t(32), size_t(100), whole.size() / 2})
    EXPECT_TRUE(contains(refusal(whole.substr(0, whole.size() - cut)), "has no weights")) << cut;
  EXPECT_TRUE(contains(refusal(whole.substr(64)), "bytes long"));
  EXPECT_TRUE(contains(refusal(whole + "x"), "has no weights"));
}

TEST(Artefact, EveryBoundIsChecked) {
  const std::string whole = toy::append(image, toy::sections());
  const size_t trailer = whole.size() - sizeof(tenon_trailer);
  const size_t table = trailer - 2 * sizeof(tenon_section);
  auto with = [&](size_t at, uint64_t value, size_t bytes = 8) {
    std::string changed = whole;
    std::memcpy(changed.data() + at, &value, bytes);
    return refusal(changed);
  };
  for (uint64_t value : {UINT64_MAX, uint64_t(whole.size()), uint64_t(trailer) - 1}) {
    EXPECT_TRUE(contains(with(trailer + offsetof(tenon_trailer, table_offset), value), "table"));
    EXPECT_TRUE(contains(with(table + offsetof(tenon_section, bytes), value), "'weights'"));
    EXPECT_TRUE(contains(with(table + offsetof(tenon_section, offset), value), "'weights'"));
  }
  EXPECT_TRUE(contains(with(trailer + offsetof(tenon_trailer, sections), UINT32_MAX, 4), "table"));
  EXPECT_TRUE(contains(with(trailer + offsetof(tenon_trailer, version), 9, 4), "version 9"));
  EXPECT_TRUE(contains(with(table + offsetof(tenon_section, offset), 64), "page"));
  EXPECT_TRUE(contains(with(table + offsetof(tenon_section, bytes), 64), "another compilation"));
  EXPECT_TRUE(contains(with(table + offsetof(tenon_section, checksum), 1), "another compilation"));
}

TEST(Artefact, ForeignOrMissingSectionsAreRefused) {
  toy::Sections sections = toy::sections();
  EXPECT_TRUE(contains(refusal(toy::append(image, {sections[0]})), "no meta"));
  EXPECT_TRUE(contains(refusal(toy::append(image, {sections[1]})), "no weights"));
  EXPECT_TRUE(
      contains(refusal(toy::append(image, {sections[0], sections[0], sections[1]})), "twice"));
  EXPECT_TRUE(contains(refusal(toy::append(image, {sections[0], {"meta", "{"}})), "JSON"));
  EXPECT_TRUE(contains(refusal(toy::append(image, {sections[0], {"meta", R"({"context": "x"})"}})),
                       "'context'"));
  sections[0].second[0] ^= 1; // other weights of the same size
  EXPECT_TRUE(contains(refusal(toy::append(image, sections)), "another compilation"));
}

TEST(Artefact, VerifyReadsEverything) {
  std::string whole = toy::append(image, toy::sections());
  whole[8192 + 5] ^= 1;            // in the weights, behind the table's back
  Artefact artefact = open(whole); // opening does not read them
  EXPECT_THROW(artefact.verify(), Error);
}

TEST(Artefact, SidecarIsFoundBesideTheExecutable) {
  toy::Sections sections = toy::sections(R"("weights_file": "/elsewhere/model.weights")");
  const std::string executable = toy::append(image, {sections[1]});
  EXPECT_TRUE(contains(refusal(executable), "/elsewhere/model.weights"));
  toy::writeFile(path("model.weights"), toy::append("", {sections[0]}));
  Artefact artefact = open(executable);
  EXPECT_EQ(std::memcmp(artefact.weights(), toy::weights(), toy::weightBytes), 0);
  artefact.verify();
  sections[0].second[9] ^= 1;
  toy::writeFile(path("model.weights"), toy::append("", {sections[0]}));
  EXPECT_TRUE(contains(refusal(executable), "model.weights"));
}
