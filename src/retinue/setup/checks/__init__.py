"""What the doctor looks at, one subject in each file."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.setup.checks.check import DoctorCheck as DoctorCheck
    from retinue.setup.checks.together import Failure as Failure, together as together
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "check": "DoctorCheck",
            "together": "Failure together",
        },
    )
