/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Capabilities of every thread of the process, at a moment when they run.
 *
 * A thread's capabilities are its own, and only itself may give them away: each is sent a signal whose handler does. So glibc
 * changes the user of a process, and libpsx its capabilities. The signal is SIGURG: it does not queue up, and without a handler it
 * is ignored, so that one which comes late does nothing.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim.h"

/* Looks at all threads, each 1 ms after the last. */
#define ROUNDS 2000

static uint64_t kept;

/* Async-signal-safe: system calls and memory of its own. */
static int give_away(void)
{
	/*
	 * The bounding set too, though no program can be started. A thread without CAP_SETPCAP, as under a service manager that has
	 * bounded it, is refused: then the set is no larger than the manager's.
	 */
	for (int capability = 0; capability <= CAP_LAST_CAP; capability++)
		if ((kept & (UINT64_C(1) << capability)) == 0)
			(void)prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);

	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data) != 0)
		return -errno;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		uint32_t keep = (uint32_t)(kept >> (32 * i));

		data[i].permitted &= keep;
		data[i].effective &= keep;
		data[i].inheritable = 0;
	}
	return syscall(SYS_capset, &header, data) == 0 ? 0 : -errno;
}

static void on_signal(int number)
{
	int before = errno;

	(void)number;
	(void)give_away();
	errno = before;
}

/* Whether a thread has more than is kept; one that has ended has nothing. */
static int has_more(long thread)
{
	char path[64], line[256];
	int more = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%ld/status", thread);
	FILE *status = fopen(path, "re");
	if (status == NULL)
		return 0;
	while (fgets(line, sizeof(line), status) != NULL)
		if (strncmp(line, "CapPrm:", 7) == 0)
			more = (strtoull(line + 7, NULL, 16) & ~kept) != 0;
	fclose(status);
	return more;
}

/* Sends the signal to each thread that has more; how many there were, or a negative errno. */
static int ask_others(void)
{
	DIR *tasks = opendir("/proc/self/task");
	int asked = 0;

	if (tasks == NULL)
		return -errno;
	for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
		long thread = strtol(entry->d_name, NULL, 10);

		if (thread > 0 && has_more(thread)) {
			asked++;
			(void)syscall(SYS_tgkill, getpid(), thread, SIGURG);
		}
	}
	closedir(tasks);
	return asked;
}

int npcc_keep_capabilities(uint64_t keep)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, before;
	const struct timespec pause = {0, 1000000};
	int left;

	kept = keep;
	left = give_away();
	if (left != 0)
		return left;
	if (sigaction(SIGURG, &action, &before) != 0)
		return -errno;
	left = 1;
	for (int round = 0; round < ROUNDS && left > 0; round++) {
		left = ask_others();
		if (left > 0)
			nanosleep(&pause, NULL);
	}
	(void)sigaction(SIGURG, &before, NULL);
	return left > 0 ? -EBUSY : left;
}
