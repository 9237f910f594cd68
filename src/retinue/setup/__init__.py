"""Adds Retinue to the configuration files of MCP hosts, and runs the doctor. Knows nothing of runs."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.setup.check import DoctorCheck as DoctorCheck
    from retinue.setup.doctor import DoctorSubject as DoctorSubject, run_doctor as run_doctor
    from retinue.setup.host_file_change import (
        HostFileChange as HostFileChange,
        apply_change as apply_change,
        plan_install as plan_install,
        plan_uninstall as plan_uninstall,
    )
    from retinue.setup.hosts import (
        HOSTS as HOSTS,
        SERVER_NAME as SERVER_NAME,
        InstallScope as InstallScope,
        ServerEntry as ServerEntry,
        find_host as find_host,
        install_link as install_link,
        is_in_package_cache as is_in_package_cache,
        retinue_command as retinue_command,
    )
    from retinue.setup.machine import Machine as Machine
    from retinue.setup.model_checks import describe_skills as describe_skills
    from retinue.setup.model_trial import (
        TRIAL_PROJECT as TRIAL_PROJECT,
        TrialResult as TrialResult,
        run_trial as run_trial,
    )
    from retinue.setup.project_examples import write_agent as write_agent, write_examples as write_examples
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "check": "DoctorCheck",
            "doctor": "DoctorSubject run_doctor",
            "host_file_change": "HostFileChange apply_change plan_install plan_uninstall",
            "hosts": (
                "HOSTS SERVER_NAME InstallScope ServerEntry find_host install_link is_in_package_cache "
                "retinue_command"
            ),
            "machine": "Machine",
            "model_checks": "describe_skills",
            "model_trial": "TRIAL_PROJECT TrialResult run_trial",
            "project_examples": "write_agent write_examples",
        },
    )
