# -Wall -Wextra for our own code; LLVM's headers are system headers.
add_compile_options(-Wall -Wextra)
