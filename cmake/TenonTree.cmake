# The files that `tenon compile` looks for (tools/Locations.h), at the same places in the build folder as in an
# installed tree:
#
#   lib/libTenon.so  lib/libtenon_*.a  lib/tenon/{kernels,tenon.map}  share/tenon/{models,licenses.txt}
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/share/tenon ${CMAKE_BINARY_DIR}/lib/tenon)
file(CREATE_LINK ${CMAKE_SOURCE_DIR}/models ${CMAKE_BINARY_DIR}/share/tenon/models SYMBOLIC)
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

install(TARGETS Tenon DESTINATION lib)
install(TARGETS tenon_runtime tenon_main tenon_tokenizer DESTINATION lib)
install(FILES ${CMAKE_BINARY_DIR}/lib/tenon/tenon.map DESTINATION lib/tenon)
install(FILES ${CMAKE_BINARY_DIR}/share/tenon/licenses.txt DESTINATION share/tenon)
install(DIRECTORY models DESTINATION share/tenon)
install(FILES runtime/tenon.h DESTINATION include)
