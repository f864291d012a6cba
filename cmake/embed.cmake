# cmake -DOUTPUT=FILE.cpp "-DFILES=A;B" -DHEADER=embedded.hpp -DNAMESPACE=heddle -P embed.cmake: the files' texts as string
# constants, an array of EmbeddedFile that HEADER declares.
set(text "// Written by cmake/embed.cmake.\n#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n\n")
string(APPEND text "const EmbeddedFile embedded_files[] = {\n")
foreach(file IN LISTS FILES)
  get_filename_component(name "${file}" NAME)
  file(READ "${file}" content)
  string(APPEND text "    {\"${name}\", R\"=embedded=(${content})=embedded=\"},\n")
endforeach()
string(APPEND text "    {}};\n\n}  // namespace ${NAMESPACE}\n")
file(WRITE "${OUTPUT}" "${text}")
