/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Privileges of every thread of the process, at a moment when they run: its user, its capabilities, its files.
 *
 * To the kernel all three are a thread's own, and only itself may give them away: each is sent a signal whose handler does. So glibc
 * changes the user of a process, and libpsx its capabilities; neither does both in one step, nor Landlock. The signal is SIGURG: it does
 * not queue up, and without a handler it is ignored, so that one which comes late does nothing.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim.h"

/* Looks at all threads, each 1 ms after the last. */
#define ROUNDS 2000
/* Most threads of a process. */
#define MOST_THREADS 4096

/* A late handler reads them after the function has returned: static, the groups too. */
static struct npcc_privileges kept;
static uint32_t groups[NPCC_MOST_GROUPS];

/* Threads that have complied, and the first refusal of the kernel, a negative errno. */
static _Atomic long complied[MOST_THREADS];
static atomic_size_t count;
static atomic_int refusal;

/*
 * The user's change by the system calls themselves, as glibc's functions change all threads. Without KEEPCAPS the kernel would take all
 * capabilities with it. A thread that is this user already, as at a second attempt, may not set groups any more.
 */
static int become_user(void)
{
	if (!kept.changes_user || (uint32_t)syscall(SYS_geteuid) == kept.user)
		return 0;
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0 ||
	    syscall(SYS_setgroups, kept.group_count, groups) != 0 ||
	    syscall(SYS_setresgid, kept.group, kept.group, kept.group) != 0 ||
	    syscall(SYS_setresuid, kept.user, kept.user, kept.user) != 0)
		return -errno;
	return 0;
}

/* Landlock is for those only who gain nothing by starting a program. */
static int restrict_files(void)
{
	if (kept.ruleset < 0)
		return 0;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || syscall(SYS_landlock_restrict_self, kept.ruleset, 0) != 0)
		return -errno;
	return 0;
}

static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data) != 0)
		return -errno;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		data[i].permitted &= (uint32_t)(kept.capabilities >> (32 * i));
		/* The change of the user has emptied the effective set. */
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	return syscall(SYS_capset, &header, data) == 0 ? 0 : -errno;
}

/* Async-signal-safe: system calls and memory of its own. */
static int give_away(void)
{
	int error;

	/*
	 * The bounding set too, though no program can be started. A thread without CAP_SETPCAP, as under a service manager that has
	 * bounded it, is refused: then the set is no larger than the manager's.
	 */
	for (int capability = 0; capability <= CAP_LAST_CAP; capability++)
		if ((kept.capabilities & (UINT64_C(1) << capability)) == 0)
			(void)prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
	error = restrict_files();
	if (error == 0)
		error = become_user();
	return error == 0 ? drop_capabilities() : error;
}

static bool has_complied(long thread)
{
	size_t all = atomic_load(&count);

	for (size_t i = 0; i < all && i < MOST_THREADS; i++)
		if (atomic_load(&complied[i]) == thread)
			return true;
	return false;
}

static void comply(void)
{
	long thread = syscall(SYS_gettid);
	int error, none = 0;

	if (has_complied(thread))
		return;
	error = give_away();
	if (error == 0) {
		size_t at = atomic_fetch_add(&count, 1);

		if (at < MOST_THREADS)
			atomic_store(&complied[at], thread);
		else
			error = -ENOMEM;
	}
	if (error != 0)
		(void)atomic_compare_exchange_strong(&refusal, &none, error);
}

static void on_signal(int number)
{
	int before = errno;

	(void)number;
	comply();
	errno = before;
}

/* Sends the signal to each thread that has not complied; how many there were, or a negative errno. */
static int signal_others(void)
{
	DIR *tasks = opendir("/proc/self/task");
	int left = 0;

	if (tasks == NULL)
		return -errno;
	for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
		long thread = strtol(entry->d_name, NULL, 10);

		if (thread > 0 && !has_complied(thread)) {
			left++;
			(void)syscall(SYS_tgkill, getpid(), thread, SIGURG);
		}
	}
	closedir(tasks);
	return left;
}

int npcc_keep_privileges(const struct npcc_privileges *privileges)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, before;
	const struct timespec pause = {0, 1000000};
	const int dumps = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
	int left = 1;

	if (privileges->group_count > NPCC_MOST_GROUPS)
		return -EINVAL;
	kept = *privileges;
	if (kept.group_count > 0)
		memcpy(groups, kept.groups, kept.group_count * sizeof(*groups));
	atomic_store(&count, 0);
	atomic_store(&refusal, 0);
	comply();
	if (atomic_load(&refusal) != 0)
		return atomic_load(&refusal);
	if (sigaction(SIGURG, &action, &before) != 0)
		return -errno;
	for (int round = 0; round < ROUNDS && left > 0 && atomic_load(&refusal) == 0; round++) {
		left = signal_others();
		if (left > 0)
			nanosleep(&pause, NULL);
	}
	(void)sigaction(SIGURG, &before, NULL);
	/* A change of the user turns core dumps off, and gives root the process's own files in /proc. */
	if (dumps == 1)
		(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	if (atomic_load(&refusal) != 0)
		return atomic_load(&refusal);
	return left > 0 ? -EBUSY : left;
}

int npcc_filter_and_log(const void *filter, uint16_t length)
{
	/* The kernel only reads the filter. */
	struct sock_fprog program = {.len = length, .filter = (struct sock_filter *)filter};
	long done;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -errno;
	done = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_LOG, &program);
	if (done < 0)
		return -errno;
	/* The number of a thread that has other filters. */
	return done > 0 ? -EBUSY : 0;
}
