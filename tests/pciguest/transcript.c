/* Transcript of a driver's answers about one device, for comparison with its profile in tests/card: transcript EAL-ARGUMENTS...
 *
 * One line per call, as `name key=value...`. Bursts of 1 to 64 frames are sent until three transmit rings are filled. After each burst,
 * once the device has sent it, `answers` has the driver's answers about every descriptor from offset 0 on, run-length encoded (F: full,
 * D: done, U: unavailable), and `held` the number of buffers that the driver has not freed.
 *
 * The device's other end must send each frame back. A device completes the descriptors of all frames that are due before it takes in the
 * next one, so a frame that came back is complete, however slow the machine is. */
#include <stdio.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

enum { RING = 1024, BURST = 64, RINGS = 3, FRAME = 60, BACK_MS = 30000, BUFFER = 9216 + RTE_PKTMBUF_HEADROOM };

static int fails(const char *call, int rc)
{
	if (rc < 0)
		fprintf(stderr, "%s: %s\n", call, rte_strerror(-rc));
	return rc < 0;
}

static void print_info(const struct rte_eth_dev_info *info)
{
	printf("info driver=%s min_mtu=%u max_mtu=%u max_rx_pktlen=%u min_rx_bufsize=%u max_rx_queues=%u max_tx_queues=%u"
	       " scatter=%s fast_free=%s rx_desc=%u,%u,%u tx_desc=%u,%u,%u rx_ring=%u tx_ring=%u rx_drop_en=%u tx_rs_thresh=%u tx_free_thresh=%u\n",
	       info->driver_name, info->min_mtu, info->max_mtu, info->max_rx_pktlen, info->min_rx_bufsize, info->max_rx_queues,
	       info->max_tx_queues, info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER ? "true" : "false",
	       info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE ? "true" : "false",
	       info->rx_desc_lim.nb_min, info->rx_desc_lim.nb_max, info->rx_desc_lim.nb_align, info->tx_desc_lim.nb_min,
	       info->tx_desc_lim.nb_max, info->tx_desc_lim.nb_align, info->default_rxportconf.ring_size,
	       info->default_txportconf.ring_size, info->default_rxconf.rx_drop_en, info->default_txconf.tx_rs_thresh,
	       info->default_txconf.tx_free_thresh);
}

static void print_answers(uint16_t port, uint16_t descriptors)
{
	char last = 0;
	unsigned run = 0;

	printf("answers");
	for (uint32_t offset = 0; offset <= descriptors; offset++) {
		char answer = 0;

		if (offset < descriptors) {
			int rc = rte_eth_tx_descriptor_status(port, 0, (uint16_t)offset);

			answer = rc < 0 ? 'E' : "FDU"[rc];
		}
		if (answer == last) {
			run++;
			continue;
		}
		if (run > 0)
			printf(" %c%u", last, run);
		last = answer;
		run = 1;
	}
	printf("\n");
}

/* Sends a burst of `count` frames; returns the number that the driver took. */
static uint16_t burst(uint16_t port, struct rte_mempool *pool, uint16_t count)
{
	static const uint8_t frame[FRAME] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x88, 0xb5 };
	struct rte_mbuf *row[BURST];
	uint16_t taken;

	if (rte_pktmbuf_alloc_bulk(pool, row, count) != 0)
		return 0;
	for (uint16_t at = 0; at < count; at++)
		memcpy(rte_pktmbuf_append(row[at], FRAME), frame, FRAME);
	taken = rte_eth_tx_burst(port, 0, row, count);
	rte_pktmbuf_free_bulk(row + taken, count - taken);
	return taken;
}

/* Waits until `count` frames came back. */
static int wait_for_frames(uint16_t port, uint16_t count)
{
	uint16_t back = 0;

	for (int at = 0; at < BACK_MS; at++) {
		struct rte_mbuf *row[BURST];
		uint16_t came = rte_eth_rx_burst(port, 0, row, BURST);

		rte_pktmbuf_free_bulk(row, came);
		back += came;
		if (back >= count)
			return 0;
		if (came == 0)
			rte_delay_ms(1);
	}
	fprintf(stderr, "of %u frames %u came back\n", count, back);
	return 1;
}

static int wait_for_link(uint16_t port)
{
	struct rte_eth_link link;

	for (int at = 0; at < 100; at++) {
		if (rte_eth_link_get_nowait(port, &link) == 0 && link.link_status)
			return 0;
		rte_delay_ms(100);
	}
	fprintf(stderr, "the link does not come up\n");
	return 1;
}

static int transcript(uint16_t port)
{
	struct rte_eth_conf conf = { .rxmode.mtu = 1500 };
	struct rte_eth_dev_info info;
	struct rte_eth_fc_conf fc = { 0 };
	struct rte_eth_pfc_conf pfc = { .fc.mode = RTE_ETH_FC_RX_PAUSE, .priority = 3 };
	struct rte_mempool *rx, *tx;
	uint16_t rx_descriptors = RING, tx_descriptors = RING;
	uint32_t seed = 1, given = 0;

	if (fails("dev_info_get", rte_eth_dev_info_get(port, &info)))
		return 1;
	print_info(&info);
	rx = rte_pktmbuf_pool_create("rx", 4096, 0, 0, BUFFER, SOCKET_ID_ANY);
	tx = rte_pktmbuf_pool_create("tx", 4096, 0, 0, BUFFER, SOCKET_ID_ANY);
	if (rx == NULL || tx == NULL || fails("dev_configure", rte_eth_dev_configure(port, 1, 1, &conf)) ||
	    fails("adjust_nb_rx_tx_desc", rte_eth_dev_adjust_nb_rx_tx_desc(port, &rx_descriptors, &tx_descriptors)) ||
	    fails("rx_queue_setup", rte_eth_rx_queue_setup(port, 0, rx_descriptors, SOCKET_ID_ANY, NULL, rx)) ||
	    fails("tx_queue_setup", rte_eth_tx_queue_setup(port, 0, tx_descriptors, SOCKET_ID_ANY, NULL)))
		return 1;
	printf("priority_flow_ctrl_set rc=%d\n", rte_eth_dev_priority_flow_ctrl_set(port, &pfc));
	printf("flow_ctrl_get rc=%d\n", rte_eth_dev_flow_ctrl_get(port, &fc));
	if (fails("dev_start", rte_eth_dev_start(port)) || wait_for_link(port))
		return 1;
	printf("ring descriptors=%u\n", tx_descriptors);
	printf("status rc=%d\n", rte_eth_tx_descriptor_status(port, 0, 0));
	while (given < RINGS * tx_descriptors) {
		uint16_t taken, count;

		/* The generator of the C standard's example: the same bursts on every machine. */
		seed = seed * 1103515245 + 12345;
		count = (uint16_t)(1 + (seed >> 16) % BURST);
		if (given < BURST)
			count = 1;
		taken = burst(port, tx, count);
		if (wait_for_frames(port, taken))
			return 1;
		printf("burst offered=%u taken=%u held=%u\n", count, taken, rte_mempool_in_use_count(tx));
		print_answers(port, tx_descriptors);
		if (taken == 0) {
			fprintf(stderr, "the driver takes no more frames\n");
			return 1;
		}
		given += taken;
	}
	rte_eth_dev_stop(port);
	return 0;
}

int main(int argc, char **argv)
{
	uint16_t port;
	int rc;

	if (fails("eal_init", rte_eal_init(argc, argv)))
		return 1;
	port = (uint16_t)rte_eth_find_next(0);
	if (port >= RTE_MAX_ETHPORTS) {
		fprintf(stderr, "no port\n");
		return 1;
	}
	rc = transcript(port);
	rte_eth_dev_close(port);
	rte_eal_cleanup();
	return rc;
}
