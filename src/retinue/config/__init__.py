"""Declares all settings and loads them from files, environment variables and flags.

No other package reads settings files or `RETINUE_*` variables. Knows nothing of what settings are for.
"""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.config.load import (
        CHILD_SOCKET as CHILD_SOCKET,
        CHILD_TOKEN as CHILD_TOKEN,
        DATA_DIR as DATA_DIR,
        LoadedSettings as LoadedSettings,
        SettingProblem as SettingProblem,
        find_project_file as find_project_file,
        load_settings as load_settings,
        load_settings_file as load_settings_file,
        settings_error as settings_error,
        user_settings_file as user_settings_file,
    )
    from retinue.config.setting_rows import setting_values as setting_values
    from retinue.config.settings import (
        CommandSettings as CommandSettings,
        PolicySettings as PolicySettings,
        RuntimeSettings as RuntimeSettings,
        Settings as Settings,
    )
    from retinue.config.settings_file import NamedSetting as NamedSetting, change_setting as change_setting
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "load": (
                "CHILD_SOCKET CHILD_TOKEN DATA_DIR LoadedSettings SettingProblem settings_error "
                "find_project_file load_settings load_settings_file user_settings_file"
            ),
            "setting_rows": "setting_values",
            "settings_file": "NamedSetting change_setting",
            "settings": "CommandSettings PolicySettings RuntimeSettings Settings",
        },
    )
