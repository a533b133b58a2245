# The files that `tenon compile` looks for (tools/Locations.h), at the same places in the build folder as in an
# installed tree:
#
#   lib/libTenon.so  lib/libtenon_*.a  lib/tenon/{kernels,cuda,tenon.map}  share/tenon/{models,templates,licenses.txt}
#
# An installed tree has what plugins are built with too, and works wherever it is moved:
#
#   include/tenon/{ir,passes,...}  lib/cmake/Tenon
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/share/tenon ${CMAKE_BINARY_DIR}/lib/tenon)
file(CREATE_LINK ${CMAKE_SOURCE_DIR}/models ${CMAKE_BINARY_DIR}/share/tenon/models SYMBOLIC)
file(CREATE_LINK ${CMAKE_SOURCE_DIR}/tools/templates ${CMAKE_BINARY_DIR}/share/tenon/templates SYMBOLIC)
# Sources of CUDA kernels, by their paths here.
foreach(part codegen/cuda/kernels codegen/kernels runtime)
  cmake_path(GET part PARENT_PATH parent)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/lib/tenon/cuda/${parent})
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/${part} ${CMAKE_BINARY_DIR}/lib/tenon/cuda/${part} SYMBOLIC)
endforeach()
configure_file(runtime/tenon.map ${CMAKE_BINARY_DIR}/lib/tenon/tenon.map COPYONLY)

# What `OUT info --licenses` prints: Tenon's licence and those of the libraries inside every executable.
file(READ ${CMAKE_SOURCE_DIR}/LICENSE licenses)
string(PREPEND licenses "Tenon\n\n")
foreach(package libpcre2-dev libutf8proc-dev libfmt-dev nlohmann-json3-dev libcli11-dev)
  set(notice /usr/share/doc/${package}/copyright)
  if(EXISTS ${notice})
    file(READ ${notice} text)
    string(APPEND licenses "\n${package}\n\n${text}")
  endif()
endforeach()
file(WRITE ${CMAKE_BINARY_DIR}/share/tenon/licenses.txt "${licenses}")

install(FILES ${CMAKE_BINARY_DIR}/lib/tenon/tenon.map DESTINATION lib/tenon)
install(FILES ${CMAKE_BINARY_DIR}/share/tenon/licenses.txt DESTINATION share/tenon)
install(DIRECTORY codegen/cuda/kernels DESTINATION lib/tenon/cuda/codegen/cuda)
install(DIRECTORY codegen/kernels DESTINATION lib/tenon/cuda/codegen FILES_MATCHING PATTERN "*.h")
install(FILES runtime/kernel_abi.h DESTINATION lib/tenon/cuda/runtime)
install(DIRECTORY models tools/templates DESTINATION share/tenon)
install(FILES runtime/tenon.h DESTINATION include)

# The SDK. Executables are linked against the runtime's archives by file name, not by target.
install(TARGETS tenon_runtime tenon_main tenon_tokenizer DESTINATION lib)
install(TARGETS Tenon EXPORT TenonTargets DESTINATION lib)
target_include_directories(Tenon INTERFACE $<INSTALL_INTERFACE:include/tenon>)
install(DIRECTORY ir passes codegen frontend plugin runtime DESTINATION include/tenon
  FILES_MATCHING PATTERN "*.h" PATTERN "*.td" PATTERN weights EXCLUDE PATTERN tokenizer EXCLUDE PATTERN cli EXCLUDE)
install(FILES plugin/TenonPlugin.h DESTINATION include/tenon)
install(DIRECTORY ${CMAKE_BINARY_DIR}/ir ${CMAKE_BINARY_DIR}/passes ${CMAKE_BINARY_DIR}/codegen DESTINATION include/tenon
  FILES_MATCHING PATTERN "*.inc" PATTERN Version.h PATTERN CMakeFiles EXCLUDE)

include(CMakePackageConfigHelpers)
set(TENON_INSTALL_INCLUDE include/tenon)
set(TENON_INSTALL_BIN bin)
configure_package_config_file(cmake/TenonConfig.cmake.in ${CMAKE_BINARY_DIR}/TenonConfig.cmake
  INSTALL_DESTINATION lib/cmake/Tenon PATH_VARS TENON_INSTALL_INCLUDE TENON_INSTALL_BIN)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/TenonConfigVersion.cmake COMPATIBILITY ExactVersion)
install(EXPORT TenonTargets NAMESPACE Tenon:: DESTINATION lib/cmake/Tenon)
install(FILES ${CMAKE_BINARY_DIR}/TenonConfig.cmake ${CMAKE_BINARY_DIR}/TenonConfigVersion.cmake
  cmake/TenonKernels.cmake cmake/TenonPlugin.cmake DESTINATION lib/cmake/Tenon)
