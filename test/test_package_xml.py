"""package.xml, requirements/ and pyproject.toml say the same, and apt has all of package.xml."""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from osmabench_ros.base.configuration import requirements, requirements_file

# Python has a TOML parser since 3.11.
tomllib = pytest.importorskip('tomllib' if sys.version_info >= (3, 11) else 'tomli')

REPOSITORY = Path(__file__).resolve().parents[1]

# Released for Jazzy, Kilted and Lyrical by rosdistro's lists of 2026-08-22 (8468e88ccd).
ROS = (
    'action_msgs ament_cmake ament_cmake_pytest builtin_interfaces diagnostic_msgs geometry_msgs '
    'launch launch_ros lifecycle_msgs nav_msgs rclpy ros2launch rosgraph_msgs '
    'rosidl_default_generators rosidl_default_runtime sensor_msgs std_msgs std_srvs tf2_ros '
    'vision_msgs visualization_msgs'
)

# python3-NAME is the key and the package of apt, by the rules for Noble in rosdep/*.yaml then.
PYTHON = (
    'hypothesis jinja2 numpy packaging pandas pil psutil pytest pytest-timeout rich scipy '
    'setuptools skimage yaml'
)

# rosdep's keys of Python packages that are not python3-NAME.
KEYS = {'pillow': 'python3-pil', 'pyyaml': 'python3-yaml', 'scikit-image': 'python3-skimage'}

# Extras without which nodes cannot do their work.
NEEDED = ('metrics', 'geometry', 'bags')


def keys():
    root = ET.parse(REPOSITORY / 'package.xml').getroot()
    return [str(item.text) for item in root if item.tag.endswith('depend')]


@pytest.mark.parametrize('key', keys())
def test_a_key_of_package_xml_is_had_from_apt(key):
    known = [*ROS.split(), *(f'python3-{name}' for name in PYTHON.split())]
    assert key in known, 'look it up in rosdistro, and record it above'


def read_project():
    return tomllib.loads((REPOSITORY / 'pyproject.toml').read_text('utf-8'))['project']


def dependencies(*extras):
    """Return the requirements of pyproject.toml, those of some extras included."""
    project = read_project()
    optional = project['optional-dependencies']
    lines = [*project['dependencies'], *(line for name in extras for line in optional[name])]
    return [Requirement(line) for line in lines]


def declared():
    # open3d-cpu is open3d without CUDA, only for x86; Ubuntu 24.04 runs on others too.
    return {item.name: item for item in dependencies(*NEEDED) if item.name != 'open3d-cpu'}


def test_every_python_package_is_in_package_xml_or_in_the_one_file():
    from_apt = set(keys())
    beside = {
        name: str(item.specifier)
        for name, item in declared().items()
        if KEYS.get(name, f'python3-{name}') not in from_apt
    }
    assert {item.name: str(item.specifier) for item in requirements()} == beside


def test_a_python_key_of_package_xml_is_in_pyproject_or_builds_and_tests():
    root = ET.parse(REPOSITORY / 'package.xml').getroot()
    run = {str(item.text) for item in root if item.tag in ('depend', 'exec_depend')}
    assert {key for key in run if key.startswith('python3-')} == {
        key for key in (KEYS.get(name, f'python3-{name}') for name in declared()) if key in run
    }
    tests = {str(item.text) for item in root if item.tag == 'test_depend'}
    tools = {f'python3-{item.name}' for item in pins('development')}
    assert {key for key in tests if key.startswith('python3-')} <= tools


# Tests that need them are skipped without: too large to be fetched for those alone, or with no
# build for the torch that is pinned.
UNPINNED = frozenset(['rerun-sdk', 'open_clip_torch', 'torchvision'])


def pins(name):
    text = (REPOSITORY / 'requirements' / f'{name}.txt').read_text('utf-8')
    lines = [line for line in text.splitlines() if line and not line.startswith('#')]
    return [Requirement(line) for line in lines]


ALL = dependencies(*read_project()['optional-dependencies'])
NAMES = {item.name for item in ALL}


@pytest.mark.parametrize('name', sorted(NAMES - UNPINNED))
def test_a_dependency_has_a_pin_within_its_range(name):
    found = [pin for pin in (*pins('runtime'), *pins('development')) if pin.name == name]
    assert found, 'add it to requirements/runtime.txt'
    for pin in found:
        versions = [item.version for item in pin.specifier]
        assert len(versions) == 1
        for item in ALL:
            fits = item.name != name or item.specifier.contains(versions[0])
            assert fits, f'{pin} is outside of {item}'


def test_what_is_pinned_for_the_package_is_a_dependency_of_it():
    assert {pin.name for pin in pins('runtime')} <= NAMES


def test_a_requirement_stands_in_one_file_once_for_each_system():
    lines = [str(pin) for name in ('runtime', 'development', 'ros_jazzy') for pin in pins(name)]
    assert len(set(lines)) == len(lines)
    names = [{pin.name for pin in pins(name)} for name in ('runtime', 'development', 'ros_jazzy')]
    assert sum(map(len, names)) == len(set().union(*names))


def test_the_version_is_the_same_everywhere():
    version = read_project()['version']
    assert ET.parse(REPOSITORY / 'package.xml').findtext('version') == version
    assert f'\nversion: {version}\n' in (REPOSITORY / 'CITATION.cff').read_text('utf-8')
    assert f'\n{version} (' in (REPOSITORY / 'CHANGELOG.rst').read_text('utf-8')


def test_the_readme_gives_that_file_to_pip_after_rosdep_and_before_colcon():
    readme = (REPOSITORY / 'README.md').read_text('utf-8')
    file = requirements_file().relative_to(REPOSITORY)
    steps = ('source /opt/ros/', 'rosdep install', '-m venv --system', f'/{file}', 'colcon build')
    places = [readme.index(step) for step in steps]
    assert places == sorted(places)
