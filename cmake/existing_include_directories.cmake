# ROS packages from PyPI name include folders of the machine that built them in the targets
# <package>::<package>__rosidl_generator_py. CMake stops at an imported target whose folder is
# missing, so folders that do not exist here are taken out. With a ROS from apt this does nothing.
function(keep_existing_include_directories)
  foreach(package IN LISTS ARGN)
    set(target ${package}::${package}__rosidl_generator_py)
    if(TARGET ${target})
      get_target_property(directories ${target} INTERFACE_INCLUDE_DIRECTORIES)
      set(existing "")
      foreach(directory IN LISTS directories)
        if(directory MATCHES "^\\$<" OR EXISTS "${directory}")
          list(APPEND existing "${directory}")
        endif()
      endforeach()
      set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${existing}")
    endif()
  endforeach()
endfunction()
