"""Counts the system calls of one thread of a running process.

Usage: syscalls.py TID SECONDS. Prints "ready" once the thread is traced, then a JSON object: number of the system call -> times it was made.
The thread runs at full speed between its system calls.
"""

import ctypes
import json
import os
import signal
import sys
import time

SEIZE, INTERRUPT, SYSCALL, DETACH = 0x4206, 0x4207, 24, 17
TRACE_SYSCALLS_APART = 1
ALL_CHILDREN = 0x40000000
STOP_OF_SYSCALL = signal.SIGTRAP | 0x80

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def trace(request, tid, data=0):
    if libc.ptrace(request, tid, None, data) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def stopped(tid, flags=0):
    """Status of a thread that has stopped; None if it runs on."""
    found, status = os.waitpid(tid, ALL_CHILDREN | flags)
    return status if found else None


tid, seconds = int(sys.argv[1]), float(sys.argv[2])
trace(SEIZE, tid, TRACE_SYSCALLS_APART)
trace(INTERRUPT, tid)
stopped(tid)
trace(SYSCALL, tid)
print("ready", flush=True)
made, is_entry = {}, True
deadline = time.monotonic() + seconds
while time.monotonic() < deadline:
    status = stopped(tid, os.WNOHANG)
    if status is None:
        time.sleep(0.001)
        continue
    if os.WIFSTOPPED(status) and os.WSTOPSIG(status) == STOP_OF_SYSCALL:
        if is_entry:
            with open(f"/proc/{tid}/syscall") as current:
                number = current.read().split()[0]
            made[number] = made.get(number, 0) + 1
        is_entry = not is_entry
    trace(SYSCALL, tid)
trace(INTERRUPT, tid)
# A thread stops once, for this or for a system call.
stopped(tid)
trace(DETACH, tid)
print(json.dumps(made), flush=True)
