"""Adds Retinue to the configuration files of MCP hosts, and runs the doctor. Knows nothing of runs."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.setup.check import DoctorCheck as DoctorCheck
    from retinue.setup.doctor import DoctorSubject as DoctorSubject, run_doctor as run_doctor
    from retinue.setup.host_file_change import (
        HostFileChange as HostFileChange,
        apply_change as apply_change,
        host_snippet as host_snippet,
        plan_install as plan_install,
        plan_uninstall as plan_uninstall,
        read_installed_entry as read_installed_entry,
    )
    from retinue.setup.hosts import (
        HOSTS as HOSTS,
        Host as Host,
        InstallScope as InstallScope,
        find_host as find_host,
        host_of_client as host_of_client,
        install_link as install_link,
        root_advice as root_advice,
    )
    from retinue.setup.machine import Machine as Machine
    from retinue.setup.model_checks import describe_skills as describe_skills
    from retinue.setup.model_trial import (
        TRIAL_PROJECT as TRIAL_PROJECT,
        run_trial as run_trial,
    )
    from retinue.setup.project_examples import write_agent as write_agent, write_examples as write_examples
    from retinue.setup.server_entry import (
        SHARED_COMMAND as SHARED_COMMAND,
        ServerEntry as ServerEntry,
        is_in_package_cache as is_in_package_cache,
        retinue_command as retinue_command,
    )
    from retinue.setup.web_checks import WebState as WebState
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "check": "DoctorCheck",
            "doctor": "DoctorSubject run_doctor",
            "host_file_change": (
                "HostFileChange apply_change host_snippet plan_install plan_uninstall read_installed_entry"
            ),
            "hosts": "HOSTS Host InstallScope find_host host_of_client install_link root_advice",
            "machine": "Machine",
            "model_checks": "describe_skills",
            "model_trial": "TRIAL_PROJECT run_trial",
            "project_examples": "write_agent write_examples",
            "server_entry": "SHARED_COMMAND ServerEntry is_in_package_cache retinue_command",
            "web_checks": "WebState",
        },
    )
