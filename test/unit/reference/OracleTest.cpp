// Norms, rope, attention and activations against golden data of other implementations.
#include "test/unit/kernels/Oracle.h"
#include "Jit.h"
#include <gtest/gtest.h>

using namespace tenon::test;

namespace {

std::string text(double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.17e", value);
  return buffer;
}

TEST(Oracle, RMSNorm) {
  auto golden = readOracle("attention/norm.safetensors");
  std::vector<float> weight = golden["weight"].floats();
  for (const char *eps : {"1e-2", "1e-5", "1e-6"}) {
    Jit k(
        R"(sched.kernel @k kind "" (%b: !llm.batch, %x: tensor<?x96xf32>, %w: !llm.weight<96xf32>) -> tensor<?x96xf32> {
      %y = llm.rms_norm %x, %w eps )" +
        text(std::stod(eps)) + R"( : tensor<?x96xf32>, !llm.weight<96xf32>
      sched.yield %y : tensor<?x96xf32>
    })");
    Rows x(7, 96, golden["x"].values), y(7, 96);
    k.run(Batch(7), {x, weight, y});
    y.expectNear(golden[std::string("rms.eps") + eps].values, 2e-6);
  }
}

// [2, 3, 4, 16] as 6 rows of 4 heads.
TEST(Oracle, RMSNormOfHeads) {
  auto golden = readOracle("attention/norm.safetensors");
  Jit k(
      R"(sched.kernel @k kind "" (%b: !llm.batch, %x: tensor<?x64xf32>, %w: !llm.weight<16xf32>) -> tensor<?x64xf32> {
    %y = llm.rms_norm %x, %w heads 4 eps )" +
      text(1e-6) + R"( : tensor<?x64xf32>, !llm.weight<16xf32>
    sched.yield %y : tensor<?x64xf32>
  })");
  Rows x(6, 64, golden["head_rms.x"].values), y(6, 64);
  std::vector<float> weight = golden["head_rms.weight"].floats();
  k.run(Batch(6), {x, weight, y});
  y.expectNear(golden["head_rms.out.eps1e-6"].values, 2e-6);
}

TEST(Oracle, Rope) {
  auto golden = readOracle("attention/rope.safetensors");
  const GoldenTensor &positions = golden["positions"], &x = golden["x"];
  int64_t count = positions.dim(0);
  // [heads, positions, dim] to [positions, heads dim]
  auto byToken = [&](const GoldenTensor &tensor) {
    std::vector<double> result;
    for (int64_t t = 0; t < count; ++t)
      for (int64_t i = 0; i < 3 * 64; ++i)
        result.push_back(tensor.values[(i / 64 * count + t) * 64 + i % 64]);
    return result;
  };
  Batch batch(std::vector<int32_t>(count, 1),
              std::vector<int32_t>(positions.values.begin(), positions.values.end()));
  for (const char *name :
       {"theta1e4", "theta5e5", "partial50", "partial25", "linear4", "llama3", "yarn", "longrope"})
    for (const char *style : {"half", "interleaved"}) {
      std::vector<double> frequencies = golden[std::string(name) + ".inv_freq"].values;
      auto factor = golden.find(std::string(name) + ".attention_factor");
      std::string pairs = std::to_string(frequencies.size()),
                  angles = std::to_string(2 * frequencies.size());
      Jit k(R"(sched.kernel @k kind "" (%b: !llm.batch, %x: tensor<?x192xf32>, %f: !llm.weight<)" +
            pairs + R"(xf64>) -> tensor<?x192xf32> {
        %a = llm.rope_angles %b, %f factor )" +
            text(factor == golden.end() ? 1 : factor->second.values[0]) + " : !llm.weight<" +
            pairs + R"(xf64>
        %y = llm.rope %x, %a heads 3 )" +
            style + " : tensor<?x192xf32>, tensor<?x" + angles + R"(xf32>
        sched.yield %y : tensor<?x192xf32>
      })");
      Rows rows(count, 192, byToken(x)), y(count, 192);
      k.run(batch, {rows, frequencies, y});
      SCOPED_TRACE(std::string(name) + " " + style);
      y.expectNear(byToken(golden[std::string(name) + "." + style]), 1e-6);
    }
}

// [1, heads, positions, dim] to [positions, heads dim], positions first .. last - 1.
std::vector<double> byToken(const GoldenTensor &tensor, int64_t first, int64_t last) {
  std::vector<double> result;
  for (int64_t p = first; p < last; ++p)
    for (int64_t h = 0; h < tensor.dim(1); ++h)
      for (int64_t d = 0; d < tensor.dim(3); ++d)
        result.push_back(tensor.values[(h * tensor.dim(2) + p) * tensor.dim(3) + d]);
  return result;
}

// The queries are the last of the keys' positions.
TEST(Oracle, GroupedQueryAttention) {
  auto golden = readOracle("attention/attention.safetensors");
  struct Case {
    std::string inputs, output;
    int32_t firstQuery, queries, keys;
  };
  for (const Case &c :
       {Case{"gqa", "gqa.prefill4", 0, 4, 4}, Case{"gqa", "gqa.decode5", 4, 1, 5},
        Case{"gqa", "gqa.decode6", 5, 1, 6}, Case{"offset7", "offset7", 0, 3, 10},
        Case{"scale", "scale", 0, 5, 5}, Case{"large_scores", "large_scores", 0, 4, 4}}) {
    const GoldenTensor &q = golden[c.inputs + ".q"], &k = golden[c.inputs + ".k"],
                       &v = golden[c.inputs + ".v"];
    double scale =
        c.inputs == "scale" ? golden["scale.scale"].values[0] : 1 / std::sqrt(double(q.dim(3)));
    std::string query = "tensor<?x" + std::to_string(q.dim(1) * q.dim(3)) + "xf32>";
    std::string key = "tensor<?x" + std::to_string(k.dim(1) * k.dim(3)) + "xf32>";
    Jit jit(R"(sched.kernel @k kind "" (%b: !llm.batch, %q: )" + query + ", %k: " + key +
            ", %v: " + key + ") -> " + query + R"( { %y = llm.attention %q, %k, %v, %b heads )" +
            std::to_string(q.dim(1)) + " kv_heads " + std::to_string(k.dim(1)) + " scale " +
            text(scale) + " keys context : " + query + ", " + key + " sched.yield %y : " + query +
            " }");
    Rows x(c.queries, q.dim(1) * q.dim(3), byToken(q, c.firstQuery, c.firstQuery + c.queries)),
        y(x.count, x.columns);
    Rows keys(c.keys, k.dim(1) * k.dim(3), byToken(k, 0, c.keys)),
        values(c.keys, keys.columns, byToken(v, 0, c.keys));
    SCOPED_TRACE(c.output);
    jit.run(Batch({c.queries}, {c.keys - c.queries}), {x, keys, values, y});
    // Scores of several hundred in f32 are off by 1e-5 each.
    y.expectNear(byToken(golden[c.output + ".out"], 0, c.queries),
                 c.output == "large_scores" ? 2e-4 : 5e-6);
  }
}

TEST(Oracle, Activations) {
  auto golden = readOracle("attention/act.safetensors");
  for (auto [kind, name] : {std::pair("silu", "silu"), std::pair("gelu", "gelu_erf"),
                            std::pair("gelu_tanh", "gelu_tanh"),
                            std::pair("quick_gelu", "quick_gelu"), std::pair("relu", "relu")}) {
    Jit k(R"(sched.kernel @k kind "" (%b: !llm.batch, %x: tensor<?x129xf32>) -> tensor<?x129xf32> {
      %y = llm.activation )" +
          std::string(kind) + R"( %x : tensor<?x129xf32>
      sched.yield %y : tensor<?x129xf32>
    })");
    Rows x(1, 129, golden["x"].values), y(1, 129);
    k.run(Batch(1), {x, y});
    SCOPED_TRACE(kind);
    y.expectNear(golden[name].values, 1e-6);
  }
}

TEST(Oracle, GatedMLP) {
  auto golden = readOracle("attention/act.safetensors");
  std::vector<float> gate = golden["mlp.gate"].floats(), up = golden["mlp.up"].floats(),
                     down = golden["mlp.down"].floats();
  for (auto [kind, name] :
       {std::pair("silu", "mlp.swiglu"), std::pair("gelu", "mlp.geglu_erf"),
        std::pair("gelu_tanh", "mlp.geglu_tanh"), std::pair("relu", "mlp.reglu")}) {
    Jit k(
        R"(sched.kernel @k kind "" (%b: !llm.batch, %x: tensor<?x24xf32>, %g: !llm.weight<40x24xf32>, %u: !llm.weight<40x24xf32>, %d: !llm.weight<24x40xf32>) -> tensor<?x24xf32> {
      %0 = llm.linear %x, %g : tensor<?x24xf32>, !llm.weight<40x24xf32>
      %1 = llm.linear %x, %u : tensor<?x24xf32>, !llm.weight<40x24xf32>
      %2 = llm.activation )" +
        std::string(kind) + R"( %0 : tensor<?x40xf32>
      %3 = llm.mul %2, %1 : tensor<?x40xf32>
      %4 = llm.linear %3, %d : tensor<?x40xf32>, !llm.weight<24x40xf32>
      sched.yield %4 : tensor<?x24xf32>
    })");
    Rows x(5, 24, golden["mlp.x"].values), y(5, 24);
    k.run(Batch(5), {x, gate, up, down, y});
    SCOPED_TRACE(name);
    y.expectNear(golden[name].values, 5e-6);
  }
}

} // namespace
