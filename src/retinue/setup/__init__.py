"""Getting Retinue onto a machine: hosts' configuration files and the doctor. Knows nothing of runs."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.setup.change import (
        HostFileChange as HostFileChange,
        apply_change as apply_change,
        plan_install as plan_install,
        plan_uninstall as plan_uninstall,
    )
    from retinue.setup.checks.check import DoctorCheck as DoctorCheck
    from retinue.setup.doctor import DoctorSubject as DoctorSubject, run_doctor as run_doctor
    from retinue.setup.entry import (
        ServerEntry as ServerEntry,
        is_temporary as is_temporary,
        own_command as own_command,
    )
    from retinue.setup.hosts import (
        HOSTS as HOSTS,
        SERVER_NAME as SERVER_NAME,
        InstallScope as InstallScope,
        host_named as host_named,
    )
    from retinue.setup.links import add_link as add_link
    from retinue.setup.machine import Machine as Machine
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "change": "HostFileChange apply_change plan_install plan_uninstall",
            "checks.check": "DoctorCheck",
            "doctor": "DoctorSubject run_doctor",
            "entry": "ServerEntry is_temporary own_command",
            "hosts": "HOSTS SERVER_NAME InstallScope host_named",
            "links": "add_link",
            "machine": "Machine",
        },
    )
