/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* CPU_COUNT, fopencookie */
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "wrapper.h"

#define FIELD_IS(field, type)                                                                      \
	_Static_assert(sizeof(((struct rte_mbuf *)0)->field) == sizeof(type),                      \
		       "rte_mbuf." #field " changed its width")

FIELD_IS(buf_addr, void *);
FIELD_IS(data_off, uint16_t);
FIELD_IS(refcnt, uint16_t);
FIELD_IS(nb_segs, uint16_t);
FIELD_IS(port, uint16_t);
FIELD_IS(ol_flags, uint64_t);
FIELD_IS(pkt_len, uint32_t);
FIELD_IS(data_len, uint16_t);
FIELD_IS(vlan_tci, uint16_t);
FIELD_IS(buf_len, uint16_t);
FIELD_IS(next, void *);
FIELD_IS(pool, void *);

int npcc_eal_init(int argc, char **argv)
{
	FILE *out = stdout;
	FILE *nothing = fopen("/dev/null", "we");
	int rc;

	/* glibc lets stdout be assigned, and printf() reads it anew. */
	if (nothing != NULL)
		stdout = nothing;
	rc = rte_eal_init(argc, argv);
	stdout = out;
	if (nothing != NULL)
		fclose(nothing);
	return rc;
}

static void (*log_sink)(const char *text, size_t length);

/* Reports all as written: what becomes of a message is the sink's own business. */
static ssize_t to_sink(void *unused, const char *text, size_t length)
{
	(void)unused;
	log_sink(text, length);
	return (ssize_t)length;
}

int npcc_log_to(void (*sink)(const char *text, size_t length))
{
	FILE *stream;

	log_sink = sink;
	stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = to_sink});
	/* rte_log() flushes the stream after each message. */
	return stream == NULL ? -ENOMEM : rte_openlog_stream(stream);
}

int npcc_errno(void)
{
	return rte_errno;
}

uint32_t npcc_lcore_id(void)
{
	return rte_lcore_id();
}

int npcc_lcore_cpu(uint32_t lcore)
{
	rte_cpuset_t set = rte_lcore_cpuset(lcore);

	if (CPU_COUNT(&set) != 1)
		return -1;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set))
			return cpu;
	return -1;
}

int npcc_pktmbuf_alloc_bulk(struct rte_mempool *pool, struct rte_mbuf **mbufs, uint32_t n)
{
	return rte_pktmbuf_alloc_bulk(pool, mbufs, n);
}

uint32_t npcc_ring_enqueue_burst(struct rte_ring *ring, struct rte_mbuf **mbufs, uint32_t n)
{
	return rte_ring_enqueue_burst(ring, (void *const *)mbufs, n, NULL);
}

uint32_t npcc_ring_dequeue_burst(struct rte_ring *ring, struct rte_mbuf **mbufs, uint32_t n)
{
	return rte_ring_dequeue_burst(ring, (void **)mbufs, n, NULL);
}

uint32_t npcc_ring_count(const struct rte_ring *ring)
{
	return rte_ring_count(ring);
}

int npcc_eth_link(uint16_t port, uint32_t *speed_mbps, bool *up)
{
	struct rte_eth_link link = {0};
	int rc = rte_eth_link_get_nowait(port, &link);

	if (rc != 0)
		return rc;
	*speed_mbps = link.link_speed;
	*up = link.link_status == RTE_ETH_LINK_UP;
	return 0;
}

bool npcc_rx_scatters(uint16_t port, uint16_t queue)
{
	struct rte_eth_rxq_info info = {0};

	return rte_eth_rx_queue_info_get(port, queue, &info) == 0 && info.scattered_rx;
}

void npcc_join_chains(struct rte_mbuf **mbufs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (mbufs[i]->nb_segs > 1 && rte_pktmbuf_linearize(mbufs[i]) != 0 &&
		    mbufs[i]->data_len > 2 * RTE_ETHER_ADDR_LEN)
			mbufs[i]->data_len = 2 * RTE_ETHER_ADDR_LEN;
}

bool npcc_is_packet_socket(int fd)
{
	int domain = 0;
	socklen_t size = sizeof(domain);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
	       (domain == AF_PACKET || domain == AF_XDP);
}

/* Parts that are not mapped are passed over: ENOMEM says that there were some. */
static int keep_out(const void *start, size_t length)
{
	if (madvise((void *)(uintptr_t)start, length, MADV_DONTDUMP) == 0 || errno == ENOMEM)
		return 0;
	return -errno;
}

static int keep_list_out(const struct rte_memseg_list *list, void *unused)
{
	(void)unused;
	return keep_out(list->base_va, list->len);
}

/* A segment that is mapped later is mapped anew, and has lost the advice. */
static void on_memory(enum rte_mem_event event, const void *start, size_t length, void *unused)
{
	(void)unused;
	if (event == RTE_MEM_EVENT_ALLOC)
		(void)keep_out(start, length);
}

int npcc_keep_out_of_cores(void)
{
	int rc = rte_mem_event_callback_register("npcc-cores", on_memory, NULL);

	/* Without hugepages nothing is mapped later, and DPDK tells of nothing. */
	if (rc != 0 && rte_errno != ENOTSUP && rte_errno != EEXIST)
		return -rte_errno;
	return rte_memseg_list_walk(keep_list_out, NULL);
}
