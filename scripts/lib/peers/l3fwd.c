/* Linked into DPDK's example l3fwd, whose source stays as Debian ships it. Two calls are wrapped (ld --wrap):
 * virtual devices have no receive offloads, and the example asks for checksums; and each line on stdin is answered with the number of frames
 * that port 1 has sent, on a thread of its own on core 0. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_ethdev.h>

static void *answer(void *unused)
{
	char *line = NULL;
	size_t size = 0;
	cpu_set_t first;

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	pthread_setaffinity_np(pthread_self(), sizeof(first), &first);
	while (getline(&line, &size, stdin) > 0) {
		struct rte_eth_stats stats;

		if (rte_eth_stats_get(1, &stats) == 0)
			printf("TX-packets: %" PRIu64 "\n", stats.opackets);
		fflush(stdout);
	}
	return unused;
}

int __real_rte_eth_dev_configure(uint16_t port, uint16_t rx, uint16_t tx, const struct rte_eth_conf *conf);
int __wrap_rte_eth_dev_configure(uint16_t port, uint16_t rx, uint16_t tx, const struct rte_eth_conf *conf)
{
	struct rte_eth_conf plain = *conf;
	pthread_t thread;

	plain.rxmode.offloads = 0;
	if (port == 1 && pthread_create(&thread, NULL, answer, NULL) != 0)
		return -1;
	return __real_rte_eth_dev_configure(port, rx, tx, &plain);
}

int __real_rte_eth_rx_queue_setup(uint16_t port, uint16_t queue, uint16_t descriptors, unsigned int socket,
				  const struct rte_eth_rxconf *conf, struct rte_mempool *pool);
int __wrap_rte_eth_rx_queue_setup(uint16_t port, uint16_t queue, uint16_t descriptors, unsigned int socket,
				  const struct rte_eth_rxconf *conf, struct rte_mempool *pool)
{
	struct rte_eth_rxconf plain = *conf;

	plain.offloads = 0;
	return __real_rte_eth_rx_queue_setup(port, queue, descriptors, socket, &plain, pool);
}
