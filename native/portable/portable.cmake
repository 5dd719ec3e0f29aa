# The addon of a platform package: it loads with glibc 2.28, the oldest that Node's own releases load with, and needs no
# libstdc++.
#
# A linker takes the newest version of a symbol that the C library of this machine has. Since glibc 2.34, that is a new one for
# everything that came from libpthread and libdl, although the functions are the same. So the addon is linked with libraries
# that have these symbols in their first version and no code, before the C library. test/package reads the result.
set(OLD_pthread.so.0 pthread_attr_getstack pthread_attr_setstacksize pthread_create pthread_detach pthread_getattr_np
  pthread_getspecific pthread_join pthread_key_create pthread_key_delete pthread_mutex_timedlock pthread_mutex_trylock pthread_once
  pthread_rwlock_rdlock pthread_rwlock_unlock pthread_rwlock_wrlock pthread_setname_np pthread_setspecific pthread_sigmask)
set(OLD_dl.so.2 dladdr dlclose dlerror dlopen dlsym)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(OLD_VERSION GLIBC_2.17)
  set(OLD_VERSIONS GLIBC_2.17)
else()
  set(OLD_VERSION GLIBC_2.2.5)
  set(OLD_VERSION_pthread_setname_np GLIBC_2.12)
  set(OLD_VERSIONS GLIBC_2.2.5 GLIBC_2.12)
endif()

set(OLD_FOLDER ${CMAKE_CURRENT_BINARY_DIR}/portable)
foreach(library pthread.so.0 dl.so.2)
  set(code "")
  foreach(symbol ${OLD_${library}})
    set(version ${OLD_VERSION})
    if(DEFINED OLD_VERSION_${symbol})
      set(version ${OLD_VERSION_${symbol}})
    endif()
    string(APPEND code ".globl old_${symbol}\n.type old_${symbol}, %function\nold_${symbol}:\n"
      ".symver old_${symbol}, ${symbol}@@@${version}\n")
  endforeach()
  set(versions "")
  foreach(version ${OLD_VERSIONS})
    string(APPEND versions "${version} { };\n")
  endforeach()
  file(CONFIGURE OUTPUT ${OLD_FOLDER}/${library}.s CONTENT "${code}.section .note.GNU-stack,\"\",%progbits\n")
  file(CONFIGURE OUTPUT ${OLD_FOLDER}/${library}.map CONTENT "${versions}")
  add_custom_command(OUTPUT ${OLD_FOLDER}/lib${library}
    COMMAND ${CMAKE_CXX_COMPILER} -shared -nostdlib -Wl,-soname,lib${library} -Wl,--version-script,${library}.map
      -o lib${library} ${library}.s
    DEPENDS ${OLD_FOLDER}/${library}.s ${OLD_FOLDER}/${library}.map
    WORKING_DIRECTORY ${OLD_FOLDER} VERBATIM)
  list(APPEND OLD_LIBRARIES ${OLD_FOLDER}/lib${library})
endforeach()
add_custom_target(millrace_old_glibc DEPENDS ${OLD_LIBRARIES})
add_dependencies(millrace_portable millrace_old_glibc)

# As options, because cmake writes -lpthread for the path of a libpthread.
list(TRANSFORM OLD_LIBRARIES PREPEND "-Wl," OUTPUT_VARIABLE options)
target_link_libraries(millrace_portable PRIVATE ${options} millrace_options)
# Nothing but Node's entries is exported, so no library takes this one's libstdc++ for its own.
file(CONFIGURE OUTPUT ${OLD_FOLDER}/exports.map
  CONTENT "{ global: napi_register_module_v*; node_api_module_get_api_version_v*; local: *; };\n")
target_link_options(millrace_portable PRIVATE -static-libstdc++ -Wl,--gc-sections -s
  -Wl,--version-script,${OLD_FOLDER}/exports.map)
set_target_properties(millrace_portable PROPERTIES LINK_DEPENDS "${OLD_LIBRARIES}")
