# CPU kernels as LLVM bitcode: for Tenon's own and for those of plugins.
#
#   tenon_compile_kernels(VARIABLE FOLDER SOURCES a.cpp b.cpp [INCLUDES folders])
#
# compiles the sources for each instruction set level to FOLDER/<level>.bc, which holds a module for each of them, and
# puts these files' names into VARIABLE. They are compiled without optimisation passes, since the code generator
# specialises them for each shape before it optimises; only variables leave the stack, which halves what it reads.
find_program(TENON_CLANG NAMES clang++-22 clang++ HINTS ${LLVM_TOOLS_BINARY_DIR} /usr/lib/llvm-22/bin REQUIRED)
find_program(TENON_OPT NAMES opt-22 opt HINTS ${LLVM_TOOLS_BINARY_DIR} /usr/lib/llvm-22/bin REQUIRED)
find_program(TENON_LLVM_CAT NAMES llvm-cat-22 llvm-cat HINTS ${LLVM_TOOLS_BINARY_DIR} /usr/lib/llvm-22/bin REQUIRED)

set(TENON_KERNEL_LEVELS generic avx2 avx512 avx512bf16 amx)
set(TENON_KERNEL_FLAGS_generic -march=x86-64-v2)
set(TENON_KERNEL_FLAGS_avx2 -march=x86-64-v3)
set(TENON_KERNEL_FLAGS_avx512 -march=x86-64-v4 -mavx512vnni -mprefer-vector-width=512)
set(TENON_KERNEL_FLAGS_avx512bf16 ${TENON_KERNEL_FLAGS_avx512} -mavx512bf16)
set(TENON_KERNEL_FLAGS_amx ${TENON_KERNEL_FLAGS_avx512bf16} -mamx-tile -mamx-int8 -mamx-bf16)
set(TENON_KERNEL_FLAGS
    -std=c++17 -ffp-contract=on -fno-math-errno -fno-exceptions -fno-rtti -fno-asynchronous-unwind-tables
    -fno-stack-protector)

function(tenon_compile_kernels variable folder)
  cmake_parse_arguments(PARSE_ARGV 2 ARG "" "" "SOURCES;INCLUDES")
  list(TRANSFORM ARG_INCLUDES PREPEND -I)
  set(files)
  foreach(level IN LISTS TENON_KERNEL_LEVELS)
    set(objects)
    foreach(source IN LISTS ARG_SOURCES)
      cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE path)
      cmake_path(GET source STEM stem)
      set(object ${CMAKE_CURRENT_BINARY_DIR}/kernels/${level}/${stem}.bc)
      add_custom_command(
        OUTPUT ${object}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/kernels/${level}
        COMMAND ${TENON_CLANG} -O2 -Xclang -disable-llvm-passes -emit-llvm -c ${TENON_KERNEL_FLAGS}
                ${TENON_KERNEL_FLAGS_${level}} ${ARG_INCLUDES} ${path} -o ${object} -MD -MF ${object}.d
        COMMAND ${TENON_OPT} -passes=function\(sroa\) ${object} -o ${object}
        DEPENDS ${path}
        DEPFILE ${object}.d
        VERBATIM)
      list(APPEND objects ${object})
    endforeach()
    add_custom_command(
      OUTPUT ${folder}/${level}.bc
      COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
      COMMAND ${TENON_LLVM_CAT} -b ${objects} -o ${folder}/${level}.bc
      DEPENDS ${objects}
      VERBATIM)
    list(APPEND files ${folder}/${level}.bc)
  endforeach()
  set(${variable} ${files} PARENT_SCOPE)
endfunction()

# tenon_compile_native_kernels(VARIABLE source.cpp DEFINE [FLAGS]): the same levels as ordinary objects, for tests and
# benchmarks, each with -DDEFINE<level>.
function(tenon_compile_native_kernels variable source define)
  cmake_path(GET source STEM stem)
  set(objects)
  foreach(level IN LISTS TENON_KERNEL_LEVELS)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${stem}_${level}.o)
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${TENON_CLANG} -fPIC -Wall -Wextra -Wno-unused-function -c ${TENON_KERNEL_FLAGS}
              ${TENON_KERNEL_FLAGS_${level}} ${ARGN} -D${define}${level}
              ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${object} -MD -MF ${object}.d
      DEPENDS ${source}
      DEPFILE ${object}.d
      VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  set(${variable} ${objects} PARENT_SCOPE)
endfunction()
