"""Executes runs: records, queues, meters, cancels and recovers them, and carries their questions."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.runtime.background import (
        BackgroundJobs as BackgroundJobs,
        recover_in_background as recover_in_background,
    )
    from retinue.runtime.changes import POLL_S as POLL_S, Changes as Changes
    from retinue.runtime.child_socket import open_child_socket as open_child_socket
    from retinue.runtime.notifier import (
        Notifier as Notifier,
        command_sender as command_sender,
        webhook_sender as webhook_sender,
    )
    from retinue.runtime.permissions import PermissionBroker as PermissionBroker
    from retinue.runtime.pool import Pool as Pool
    from retinue.runtime.prepared_run import Fallback as Fallback, PreparedRun as PreparedRun
    from retinue.runtime.questions import QuestionBroker as QuestionBroker
    from retinue.runtime.quotas import quota_view as quota_view
    from retinue.runtime.run_endings import DECISION_EVENT as DECISION_EVENT
    from retinue.runtime.supervisor import (
        RunParked as RunParked,
        Supervisor as Supervisor,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "background": "BackgroundJobs recover_in_background",
            "changes": "POLL_S Changes",
            "child_socket": "open_child_socket",
            "notifier": "Notifier command_sender webhook_sender",
            "permissions": "PermissionBroker",
            "pool": "Pool",
            "prepared_run": "Fallback PreparedRun",
            "questions": "QuestionBroker",
            "quotas": "quota_view",
            "run_endings": "DECISION_EVENT",
            "supervisor": "RunParked Supervisor",
        },
    )
