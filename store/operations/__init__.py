"""What each operation of `gateway.ports.Store` does with its rows: functions of `store.work.Work`.

An operation is carried out within a transaction that is not its own, may be undone, and then runs
again; so it changes nothing but rows.
"""
