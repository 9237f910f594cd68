"""One run's life: record, queue, meter, ask, cancel, recover."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.runtime.background import Background as Background
    from retinue.runtime.changes import POLL_S as POLL_S, Changes as Changes
    from retinue.runtime.child_socket import open_child_socket as open_child_socket
    from retinue.runtime.mailroom import Mailroom as Mailroom
    from retinue.runtime.permissions import PermissionBroker as PermissionBroker
    from retinue.runtime.pool import Pool as Pool
    from retinue.runtime.recovery import recover_in_background as recover_in_background
    from retinue.runtime.shielded import wait_shielded as wait_shielded
    from retinue.runtime.supervisor import (
        Parked as Parked,
        Performed as Performed,
        Supervisor as Supervisor,
        Work as Work,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "background": "Background",
            "changes": "POLL_S Changes",
            "child_socket": "open_child_socket",
            "mailroom": "Mailroom",
            "permissions": "PermissionBroker",
            "pool": "Pool",
            "recovery": "recover_in_background",
            "shielded": "wait_shielded",
            "supervisor": "Parked Performed Supervisor Work",
        },
    )
