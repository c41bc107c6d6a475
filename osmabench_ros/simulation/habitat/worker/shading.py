"""Which shader Habitat-Sim draws a scene with."""

from __future__ import annotations

import json
import os
from typing import Any

DEFAULT_PBR_CONFIG = os.path.join('data', 'default.pbr_config.json')
"""Habitat-Sim reads this from its working directory, which is the worker's own."""

LINEAR_PBR = {
    'enable_direct_lights': True,
    'direct_light_intensity': 3.141592653589793,
    'enable_ibl': False,
    # Any image found under these names would be prefiltered for half a minute.
    'ibl_envmap_filename': 'environment_map_is_switched_off',
    'ibl_blut_filename': 'environment_map_is_switched_off',
    'map_mat_txtr_to_linear': True,
    'map_output_to_srgb': True,
    'use_direct_tonemap': False,
    'use_burley_diffuse': False,
    'gamma': 2.2,
}
"""Physically based shading by the lights alone, in linear colours: radiance is albedo times
irradiance, as the intensities of the lights mean it."""


def use_linear_pbr(enabled: bool) -> None:
    """Make scenes that are loaded from now on use `LINEAR_PBR`, or Habitat-Sim's own default."""
    if not enabled:
        if os.path.exists(DEFAULT_PBR_CONFIG):
            os.remove(DEFAULT_PBR_CONFIG)
        return
    os.makedirs(os.path.dirname(DEFAULT_PBR_CONFIG), exist_ok=True)
    with open(DEFAULT_PBR_CONFIG, 'w', encoding='utf-8') as file:
        json.dump(LINEAR_PBR, file)


def set_shader(mediator: Any, shader: str) -> None:
    """Make the templates of an unused data set use a shader: flat, phong or pbr.

    'native' leaves each with what the data set asks for; 'osma_bench' too, but for those that ask
    for flat shading, on which lights do not act: they get phong.
    """
    if shader == 'native':
        return
    asked_flat = shader == 'osma_bench'
    wanted = 'phong' if asked_flat else shader
    for manager in (mediator.object_template_manager, mediator.stage_template_manager):
        for handle in manager.get_template_handles():
            template = manager.get_template_by_handle(handle)
            if asked_flat and template.shader_type.name != 'FLAT':
                continue
            template.force_flat_shading = wanted == 'flat'
            template.shader_type = wanted
            manager.register_template(template, handle)
    articulated = mediator.ao_template_manager
    for handle in articulated.get_template_handles():
        template = articulated.get_template_by_handle(handle)
        if asked_flat and template.shader_type.name != 'FLAT':
            continue
        template.shader_type = wanted
        articulated.register_template(template, handle)
