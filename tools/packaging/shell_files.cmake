# Installs completion and manual pages, which ${program} prints, under CMAKE_INSTALL_PREFIX.
set(share $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/share)

function(printed result)
  execute_process(COMMAND ${program} ${ARGN} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

# Packages of Debian have a folder of their own for zsh and fish; elsewhere the shells look here.
set(zsh zsh/site-functions)
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(zsh zsh/vendor-completions)
endif()
foreach(file bash-completion/completions/trainyard ${zsh}/_trainyard
        fish/vendor_completions.d/trainyard.fish)
  string(REGEX MATCH "^(bash|zsh|fish)" shell ${file})
  printed(script --completion ${shell})
  file(WRITE ${share}/${file} "${script}")
endforeach()

# "NAME<tab>SUMMARY" in each line. The last word is empty, which a list of arguments would lose.
execute_process(COMMAND ${program} --complete --man "" OUTPUT_VARIABLE pages
                COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE "\t[^\n]*" "" names "${pages}")
string(REGEX MATCHALL "[^\n]+" names "${names}")
printed(page --man)
file(WRITE ${share}/man/man1/trainyard.1 "${page}")
set(files ${share}/man/man1/trainyard.1)
foreach(name ${names})
  printed(page --man ${name})
  file(WRITE ${share}/man/man1/trainyard-${name}.1 "${page}")
  list(APPEND files ${share}/man/man1/trainyard-${name}.1)
endforeach()

# Without name and time in it, as Debian's policy wants manual pages.
find_program(gzip gzip)
if(gzip)
  execute_process(COMMAND ${gzip} -9nf ${files} COMMAND_ERROR_IS_FATAL ANY)
endif()
