# What a plugin's CMakeLists.txt is written with, after find_package(Tenon).

# tenon_add_plugin(NAME SOURCES a.cpp ... [KERNELS k.cpp ...] [DEVICE_SOURCES shapes.h k.cu ...])
#
# A plugin NAME.so. Its CPU kernels are compiled to bitcode and carried inside, its CUDA kernels as text;
# `plugin/EmbeddedKernels.h` gives them to the code of the plugin.
function(tenon_add_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;KERNELS;DEVICE_SOURCES")
  add_library(${name} MODULE ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE Tenon::Tenon)
  # The headers of LLVM declare what only its RTTI and its flags can link.
  set_target_properties(${name} PROPERTIES PREFIX "" CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON)
  if(ARG_KERNELS)
    set(folder ${CMAKE_CURRENT_BINARY_DIR}/${name}-kernels)
    tenon_compile_kernels(files ${folder} SOURCES ${ARG_KERNELS} INCLUDES ${TENON_INCLUDE_DIR}
      ${TENON_INCLUDE_DIR}/codegen/cpu/kernels ${CMAKE_CURRENT_SOURCE_DIR})
    set(blobs)
    set(cases)
    foreach(level IN LISTS TENON_KERNEL_LEVELS)
      string(APPEND blobs
        "asm(\".pushsection .rodata\\nkernels_${level}:\\n.incbin \\\"${folder}/${level}.bc\\\"\\n"
        "kernels_${level}_end:\\n.popsection\");\nextern \"C\" __attribute__((visibility(\"hidden\"))) const char "
        "kernels_${level}[], kernels_${level}_end[];\n")
      string(APPEND cases "  if (level == \"${level}\")\n"
        "    return {kernels_${level}, size_t(kernels_${level}_end - kernels_${level})};\n")
    endforeach()
    set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}-kernels.cpp)
    file(CONFIGURE OUTPUT ${source} @ONLY CONTENT
      "// Written by tenon_add_plugin.\n#include \"plugin/EmbeddedKernels.h\"\n${blobs}
llvm::StringRef tenon::getEmbeddedKernels(llvm::StringRef level) {\n${cases}  return {};\n}\n")
    set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS "${files}")
    target_sources(${name} PRIVATE ${source})
  endif()
  if(ARG_DEVICE_SOURCES)
    set(parts)
    set(paths)
    foreach(part IN LISTS ARG_DEVICE_SOURCES)
      cmake_path(ABSOLUTE_PATH part BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
      list(APPEND paths ${part})
      string(APPEND parts ".incbin \\\"${part}\\\"\\n")
    endforeach()
    set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}-device-sources.cpp)
    file(CONFIGURE OUTPUT ${source} @ONLY CONTENT
      "// Written by tenon_add_plugin.\n#include \"plugin/EmbeddedKernels.h\"
asm(\".pushsection .rodata\\ndevice_sources:\\n${parts}device_sources_end:\\n.popsection\");
extern \"C\" __attribute__((visibility(\"hidden\"))) const char device_sources[], device_sources_end[];
llvm::StringRef tenon::getEmbeddedDeviceSource() {
  return {device_sources, size_t(device_sources_end - device_sources)};\n}\n")
    set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS "${paths}")
    target_sources(${name} PRIVATE ${source})
  endif()
endfunction()

# tenon_add_check(PLUGIN FOLDER)
#
# The target `check`: lit runs the tests in FOLDER with the plugin loaded by every tool (TENON_PLUGIN_PATH). A test is a
# .mlir or .test file with RUN lines; `%plugin` is the plugin's file, `%source` the folder of the project.
function(tenon_add_check plugin folder)
  cmake_path(ABSOLUTE_PATH folder BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set(site ${CMAKE_CURRENT_BINARY_DIR}/check)
  file(GENERATE OUTPUT ${site}/lit.cfg.py CONTENT
"# Written by tenon_add_check.
import os, lit.formats
config.name = '${plugin}'
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = ['.mlir', '.test', '.yaml']
config.excludes = ['Inputs']
config.test_source_root = '${folder}'
config.test_exec_root = '${site}'
config.environment['PATH'] = os.pathsep.join(
    ['${TENON_TOOLS_DIR}', '${LLVM_TOOLS_BINARY_DIR}', config.environment['PATH']])
config.environment['TENON_PLUGIN_PATH'] = '$<TARGET_FILE:${plugin}>'
config.substitutions += [('%plugin', '$<TARGET_FILE:${plugin}>'), ('%source', '${CMAKE_CURRENT_SOURCE_DIR}')]
for name in ('HOME', 'TENON_CACHE', 'XDG_CACHE_HOME', 'TENON_CUDA_DRIVER'):
    if name in os.environ:
        config.environment[name] = os.environ[name]
")
  add_custom_target(check
    COMMAND ${LLVM_TOOLS_BINARY_DIR}/lit -v ${site}
    DEPENDS ${plugin}
    USES_TERMINAL)
endfunction()
