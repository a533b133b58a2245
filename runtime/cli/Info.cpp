// OUT info: what the executable is and how it would run here.
#include "runtime/Artefact.h"
#include "runtime/CpuExecutor.h"
#include "runtime/Error.h"
#include "runtime/Machine.h"
#include "runtime/Matmul.h"
#include "runtime/Program.h"
#include "runtime/cli/Cli.h"
#include "runtime/cli/Json.h"

#include <CLI/CLI.hpp>

#include <cstring>

namespace tenon::rt {

static Json describe(const Program &program) {
  const tenon_compiled &compiled = program.compiled();
  Json info = Json::parse(program.meta().json);
  Json variants = Json::array(), sections = Json::object();
  for (int i = 0; i < compiled.variant_count; ++i)
    variants.push_back(compiled.variants[i].name);
  for (const tenon_section &section : program.artefact().sections())
    sections[std::string(section.name, strnlen(section.name, sizeof section.name))] = section.bytes;
  info["vocab"] = compiled.vocab;
  info["weight_bytes"] = compiled.weight_bytes;
  info["kv_bytes_per_token"] = KvPool::positionBytes(compiled.cache);
  info["sections"] = sections;
  info["variants"] = variants;
  if (const DeviceRuntime *runtime = deviceRuntime(compiled)) {
    for (int64_t i = 0; i < compiled.device->image_count; ++i)
      variants.push_back(compiled.device->images[i].name);
    info["variants"] = variants;
    try {
      info["devices"] = runtime->list();
    } catch (const Error &) {
      info["devices"] = Json::array(); // runs on another machine
    }
    return info;
  }
  try {
    info["variant"] = chooseVariant(compiled).name;
  } catch (const Error &) {
    info["variant"] = nullptr; // runs on another machine
  }
  int threads = allowedCpus();
  info["threads"] = compiled.max_threads > 0 ? std::min(threads, compiled.max_threads) : threads;
  info["onednn"] = describeOneDnn();
  return info;
}

void runInfo(const Invocation &invocation, const Arguments &arguments) {
  bool json = false, ir = false, licenses = false, verify = false;
  CLI::App app("Says what this executable is and how it would run here.", "info");
  app.add_flag("--json", json, "Print one JSON object");
  app.add_flag("--ir", ir, "Print the llm and sched IR it was compiled from");
  app.add_flag("--licenses", licenses, "Print the licences of what is inside");
  app.add_flag("--verify", verify, "Read everything and compare checksums");
  parse(app, arguments);

  Program program(invocation.compiled, invocation.path, invocation.name);
  auto printSection = [&](std::string_view name) {
    std::string text(program.artefact().section(name));
    if (text.empty())
      refuse("{} has no '{}' section", invocation.name, name);
    print(text.back() == '\n' ? text : text + "\n");
  };
  if (verify) {
    program.artefact().verify();
    print("every section has its checksum\n");
  } else if (ir) {
    printSection("llm");
    if (!program.artefact().section("sched").empty())
      printSection("sched");
  } else if (licenses) {
    printSection("licenses");
  } else if (json) {
    printJson(describe(program));
  } else {
    const Json description = describe(program);
    for (const auto &[key, value] : description.items())
      print(fmt::format("{:<20} {}\n", key,
                        value.is_string() ? value.get<std::string>() : value.dump()));
  }
}

} // namespace tenon::rt
