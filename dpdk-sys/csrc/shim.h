/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of DPDK that are inline or thread-local and so have no symbol Rust could call.
 * Law: nothing here is called per packet; a burst is the finest grain.
 */
#ifndef NPCC_DPDK_SHIM_H
#define NPCC_DPDK_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rte_mbuf;
struct rte_mempool;
struct rte_ring;

/* rte_errno of the calling thread. */
int npcc_errno(void);

/* Logical core of the calling thread, or UINT32_MAX when it is not an EAL thread. */
uint32_t npcc_lcore_id(void);

/* The processor an lcore is pinned to, or -1 when it may run on several. */
int npcc_lcore_cpu(uint32_t lcore);

/* All n buffers or none: 0, or a negative errno. */
int npcc_pktmbuf_alloc_bulk(struct rte_mempool *pool, struct rte_mbuf **mbufs, uint32_t n);

/* At most n; returns how many were moved. */
uint32_t npcc_ring_enqueue_burst(struct rte_ring *ring, struct rte_mbuf **mbufs, uint32_t n);
uint32_t npcc_ring_dequeue_burst(struct rte_ring *ring, struct rte_mbuf **mbufs, uint32_t n);
uint32_t npcc_ring_count(const struct rte_ring *ring);

/* Link state without waiting: 0, or a negative errno. The speed is in Mb/s. */
int npcc_eth_link(uint16_t port, uint32_t *speed_mbps, bool *up);

/* Whether the queue's driver may spread a frame over several buffers. */
bool npcc_rx_scatters(uint16_t port, uint16_t queue);

/* Moves each chain among n frames into its first buffer, where there is room for it. Another keeps the two addresses, so that no reader
 * takes the beginning of a frame for the whole. */
void npcc_join_chains(struct rte_mbuf **mbufs, uint32_t n);

/* Whether the descriptor is a packet socket or an AF_XDP socket. */
bool npcc_is_packet_socket(int fd);

/*
 * DPDK's log goes to this function, a message a call, and neither to stderr nor to syslog: 0, or a negative errno. The function may be
 * called by any thread, and before EAL is up.
 */
int npcc_log_to(void (*sink)(const char *text, size_t length));

/* Keeps all memory of DPDK, what it has now and what it takes later, out of core dumps: 0, or a negative errno. */
/* rte_eal_init() without the usage that it prints to stdout when it refuses an argument; its messages on stderr stay. */
int npcc_eal_init(int argc, char **argv);

int npcc_keep_out_of_cores(void);

/* Privileges that all threads of a process keep. */
struct npcc_privileges {
	/* Capabilities, a bit each, by the kernel's numbers. */
	uint64_t capabilities;
	/* Whether the threads become another user, who is none of root's. */
	bool changes_user;
	uint32_t user, group;
	/* Supplementary groups of that user. */
	const uint32_t *groups;
	size_t group_count;
	/* Descriptor of a Landlock ruleset, or -1. */
	int ruleset;
};

/* Greatest number of supplementary groups. */
#define NPCC_MOST_GROUPS 64

/* All threads give all privileges away but these: 0, or a negative errno. Not by two threads at a time. */
int npcc_keep_privileges(const struct npcc_privileges *privileges);

/* Applies a seccomp filter of so many struct sock_filter to all threads; the kernel logs what it refuses: 0, or a negative errno. */
int npcc_filter_and_log(const void *filter, uint16_t length);

/* IP MTU of the kernel interface with this index, in the network namespace of the calling thread; or a negative errno. */
int npcc_interface_mtu(uint32_t index);

/*
 * Has the kernel hand over the frames that come by this veth one by one, none larger than the MTU: a descriptor that keeps it so until it is
 * closed, or a negative errno; ENODEV where the interface is no veth.
 */
int npcc_one_by_one(const char *interface);

#endif
