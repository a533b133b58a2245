// Small modules as text.
#ifndef TENON_TEST_UNIT_VIEW_SUPPORT_H
#define TENON_TEST_UNIT_VIEW_SUPPORT_H

#include "ir/LLM.h"
#include "mlir/Parser/Parser.h"
#include "tools/graph/GraphModel.h"
#include <gmock/gmock.h>

namespace tenon {

class ViewTest : public testing::Test {
protected:
  ViewTest() { context.loadDialect<llm::LLMDialect, mlir::func::FuncDialect>(); }

  mlir::OwningOpRef<mlir::ModuleOp> parse(llvm::StringRef text) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    EXPECT_TRUE(module);
    return module;
  }

  // @main that embeds, runs `layers` gated or plain layers, and scores.
  std::string makeModel(int layers, const std::string &extra = "") {
    std::string text =
        R"(func.func @main(%b: !llm.batch) -> (tensor<?x8xf32> {llm.result = "logits"}) {
      %e = llm.weight "embed.weight" : <8x4xf32>
      %x0 = llm.embedding %b, %e : <8x4xf32>
)";
    for (int i = 0; i < layers; ++i) {
      std::string n = std::to_string(i);
      text += "%n" + n + " = llm.weight \"layers." + n + ".norm.weight\" : <4xf32>\n" + "%w" + n +
              " = llm.weight \"layers." + n + ".up_proj.weight\" : <4x4xf32>\n" + "%y" + n +
              " = llm.rms_norm %x" + n + ", %n" + n + " eps 1.0e-5 : tensor<?x4xf32>, <4xf32>\n" +
              "%z" + n + " = llm.linear %y" + n + ", %w" + n + " : tensor<?x4xf32>, <4x4xf32>\n" +
              "%x" + std::to_string(i + 1) + " = llm.add %x" + n + ", %z" + n +
              " : tensor<?x4xf32>\n";
    }
    std::string last = std::to_string(layers);
    return text + extra + "%l = llm.linear %x" + last +
           ", %e : tensor<?x4xf32>, <8x4xf32>\n return %l : tensor<?x8xf32>\n}\n";
  }

  graph::Graph makeGraph(mlir::ModuleOp module, llvm::StringRef function = "main") {
    llvm::Expected<graph::Graph> graph = graph::buildGraph(module, function);
    if (!graph) {
      ADD_FAILURE() << llvm::toString(graph.takeError());
      return {};
    }
    return std::move(*graph);
  }

  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
};

} // namespace tenon

#endif // TENON_TEST_UNIT_VIEW_SUPPORT_H
