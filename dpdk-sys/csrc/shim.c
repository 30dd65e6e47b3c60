/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* CPU_COUNT */
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

bool npcc_is_packet_socket(int fd)
{
	int domain = 0;
	socklen_t size = sizeof(domain);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
	       (domain == AF_PACKET || domain == AF_XDP);
}
