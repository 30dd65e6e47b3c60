/* Cost of a standing queue in DPDK's scheduler library, in TSC cycles a frame: enqueue, dequeue, and CE written and the buffer freed.
 *
 *   rte-sched EAL-OPTIONS -- STANDING FRAMES     one pipe, one best-effort queue; the rates never hold a frame back
 *
 * A turn takes 64 new buffers, writes their headers as a receiving driver does, enqueues them, and dequeues 64. Output: a line
 * "ENQUEUE DEQUEUE FREE", medians of 40,000 turns: what interrupts a turn is not in them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_mbuf.h>
#include <rte_sched.h>

#define BURST 64
#define QUEUE 32768
#define LENGTH 1082
#define BUFFER 9600
#define TURNS 40000

static struct rte_sched_subport_profile_params subport_profile = {
	.tb_rate = 50000000000, .tb_size = 1 << 30, .tc_period = 10,
};
static struct rte_sched_pipe_params pipe_profile = {
	.tb_rate = 50000000000, .tb_size = 1 << 30, .tc_period = 10, .tc_ov_weight = 1, .wrr_weights = { 1, 1, 1, 1 },
};

static struct rte_sched_port *scheduler(void)
{
	struct rte_sched_subport_params subport = {
		.n_pipes_per_subport_enabled = 1, .pipe_profiles = &pipe_profile, .n_pipe_profiles = 1, .n_max_pipe_profiles = 1,
	};
	struct rte_sched_port_params params = {
		.name = "standing", .rate = 50000000000, .mtu = 9216, .frame_overhead = 24, .n_subports_per_port = 1,
		.subport_profiles = &subport_profile, .n_subport_profiles = 1, .n_max_subport_profiles = 1, .n_pipes_per_subport = 1,
	};
	struct rte_sched_port *port;
	int class;

	for (class = 0; class < RTE_SCHED_TRAFFIC_CLASSES_PER_PIPE; class++) {
		subport_profile.tc_rate[class] = pipe_profile.tc_rate[class] = 50000000000;
		subport.qsize[class] = 64;
	}
	subport.qsize[RTE_SCHED_TRAFFIC_CLASS_BE] = QUEUE;
	port = rte_sched_port_config(&params);
	if (port == NULL || rte_sched_subport_config(port, 0, &subport, 0) != 0 || rte_sched_pipe_config(port, 0, 0, 0) != 0)
		rte_exit(EXIT_FAILURE, "rte_sched refused its configuration\n");
	return port;
}

static int ascending(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

/* Median a frame of what the turns took. */
static double median(uint64_t *turns)
{
	qsort(turns, TURNS, sizeof(*turns), ascending);
	return (double)turns[TURNS / 2] / BURST;
}

/* Puts 64 new frames into the queue; returns the cycles of the enqueue. */
static uint64_t enqueue(struct rte_sched_port *port, struct rte_mempool *pool)
{
	struct rte_mbuf *frames[BURST];
	uint64_t start;
	int i;

	if (rte_pktmbuf_alloc_bulk(pool, frames, BURST) != 0)
		rte_exit(EXIT_FAILURE, "no buffers\n");
	for (i = 0; i < BURST; i++) {
		memset(rte_pktmbuf_append(frames[i], LENGTH), 0, 64);
		rte_sched_port_pkt_write(port, frames[i], 0, 0, RTE_SCHED_TRAFFIC_CLASS_BE, 0, RTE_COLOR_GREEN);
	}
	start = rte_rdtsc();
	if (rte_sched_port_enqueue(port, frames, BURST) != BURST)
		rte_exit(EXIT_FAILURE, "a frame was refused\n");
	return rte_rdtsc() - start;
}

/* Takes 64 frames out, marks and frees them; adds the cycles of both. */
static void dequeue(struct rte_sched_port *port, uint64_t *dequeued, uint64_t *freed)
{
	struct rte_mbuf *frames[BURST];
	int i, count, left;

	for (left = BURST; left > 0; left -= count) {
		uint64_t start = rte_rdtsc(), taken;

		count = rte_sched_port_dequeue(port, frames, left);
		taken = rte_rdtsc();
		for (i = 0; i < count; i++)
			rte_pktmbuf_mtod(frames[i], uint8_t *)[15] |= 3;
		rte_pktmbuf_free_bulk(frames, count);
		*dequeued += taken - start;
		*freed += rte_rdtsc() - taken;
	}
}

int main(int argc, char **argv)
{
	static uint64_t enqueued[TURNS], dequeued[TURNS], freed[TURNS];
	struct rte_mempool *pool;
	struct rte_sched_port *port;
	int ret = rte_eal_init(argc, argv);
	int standing, turn;

	if (ret < 0 || argc - ret < 2)
		rte_exit(EXIT_FAILURE, "usage: rte-sched EAL-OPTIONS -- STANDING\n");
	standing = atoi(argv[ret + 1]);
	if (standing < BURST || standing > QUEUE - BURST)
		rte_exit(EXIT_FAILURE, "write %d to %d frames\n", BURST, QUEUE - BURST);
	pool = rte_pktmbuf_pool_create("buffers", standing + 2 * BURST, 0, 0, BUFFER, SOCKET_ID_ANY);
	if (pool == NULL)
		rte_exit(EXIT_FAILURE, "huge pages for %d buffers of %d bytes are missing\n", standing, BUFFER);
	port = scheduler();
	for (turn = 0; turn < standing / BURST; turn++)
		enqueue(port, pool);
	for (turn = 0; turn < TURNS; turn++) {
		enqueued[turn] = enqueue(port, pool);
		dequeue(port, &dequeued[turn], &freed[turn]);
	}
	printf("%.0f %.0f %.0f\n", median(enqueued), median(dequeued), median(freed));
	return rte_eal_cleanup();
}
