# rosidl installs a distribution osmabench_ros without entry points, and Python looks at the first
# distribution of a name only. So the entry points and extras that pyproject.toml declares are
# written into that one's metadata; setuptools makes them at configure time.
function(install_entry_points python_destination)
  set(metadata ${CMAKE_CURRENT_BINARY_DIR}/python_metadata)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS pyproject.toml)
  file(MAKE_DIRECTORY ${metadata})
  execute_process(
    COMMAND ${Python3_EXECUTABLE} setup.py -q egg_info --egg-base ${metadata}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
    RESULT_VARIABLE result
    ERROR_VARIABLE errors)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "setup.py egg_info failed; setuptools 64 or newer is needed:\n${errors}")
  endif()
  set(python_version ${Python3_VERSION_MAJOR}.${Python3_VERSION_MINOR})
  install(FILES ${metadata}/osmabench_ros.egg-info/entry_points.txt
      ${metadata}/osmabench_ros.egg-info/requires.txt
    DESTINATION
      ${python_destination}/osmabench_ros-${osmabench_ros_VERSION}-py${python_version}.egg-info)
endfunction()

# install_python_script(<name> <module> <folder>...): a program that runs main() of the module
# with the interpreter that the package was built for.
function(install_python_script name module)
  configure_file(cmake/script.py.in ${CMAKE_CURRENT_BINARY_DIR}/scripts/${name} @ONLY)
  foreach(folder IN LISTS ARGN)
    install(PROGRAMS ${CMAKE_CURRENT_BINARY_DIR}/scripts/${name} DESTINATION ${folder})
  endforeach()
endfunction()
