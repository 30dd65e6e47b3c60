/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network card that is not there: a PCI device on a bus of its own, whose wire is a packet socket on a kernel interface.
 *
 * Answers, rings and pauses are the model's (Rust, npcc-card); this side has what needs DPDK's structures. One lock a port covers model,
 * socket and rings.
 */
#ifndef NPCC_DOUBLE_H
#define NPCC_DOUBLE_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <bus_driver.h>
#include <dev_driver.h>
#include <ethdev_driver.h>
#include <rte_mbuf.h>
#include <rte_spinlock.h>

/* Most queues of a direction. */
#define QUEUES 64
/* Longest frame on the wire, and frames a system call. */
#define LONGEST 16384
#define BATCH 64

/* What follows, up to `struct counts`, must be as on the Rust side, in answers.rs and profile.rs. */
enum moment { MOMENT_CONFIGURE, MOMENT_START, MOMENT_STOP, MOMENT_MTU_SET, MOMENT_FLOW_CTRL_SET, MOMENT_PFC_SET };
enum mtu_from { MTU_CONFIGURE, MTU_START, MTU_SET };
enum received { RECEIVED_PASSED, RECEIVED_PASSED_IF_SET, RECEIVED_CONSUMED };
enum sent { SENT_PASSED, SENT_FILTERED };
enum honors { HONORS_NEVER, HONORS_ALWAYS, HONORS_UNTIL_CLEARED, HONORS_IF_SET };

/* A driver's answers; the names are those of the table in tests/card/src/profile.rs. */
struct answers {
	size_t size;
	const char *driver;
	uint64_t rx_offloads, tx_offloads, rss;
	uint32_t max_rx_pktlen, min_rx_bufsize;
	uint16_t min_mtu, max_mtu;
	uint16_t rx_queues, tx_queues;
	/* Least, most, multiple; ring, burst; high, low. */
	uint16_t rx_desc[3], tx_desc[3];
	uint16_t rx_port[2], tx_port[2];
	uint16_t tx_rs_thresh, tx_free_thresh;
	uint16_t water[2];
	uint16_t dcb_queues[8];
	uint8_t dcb_priorities[8], dcb_classes;
	uint8_t mtu, received, sent, honors_link, honors_pfc;
	/* A bit for each moment. */
	uint8_t flaps;
	bool interface, rx_status, tx_status, rx_drop_en, peer_sees;
	/* 0 or a negative errno. */
	int32_t flow_ctrl_get, flow_ctrl_set, pfc_set, pfc_queue_info, dcb_info, link_down;
};

/* What drivers check in calls about pauses. */
struct pause_values {
	uint32_t high_water, low_water;
	uint16_t pause_time, send_xon;
	bool forward, autoneg, pfc_on, link_pause_on;
};

/* Behaviour of a driver and its cards, by name; lives for ever. */
struct profile;

/* Model of one card, with its rings; from start to stop. */
struct card;

/* A place of a received frame: bytes in each buffer, of as many frames as the driver makes of it. */
struct pieces {
	/* Bytes of each buffer but the last. */
	uint32_t each;
	/* Buffers of one frame, or frames of one buffer each. */
	bool chained;
	/* The card drops the frame. */
	bool lost;
};

/* Null where there is none of this name; `other` names rows of which the second answer counts, and may be null. */
const struct profile *profile_find(const char *name, const char *other);
/* The error of a probe on a machine that lacks a thing, or 0. */
int profile_lacks(const struct profile *profile, const char *thing);
void profile_answers(const struct profile *profile, struct answers *answers);
/* Whether a driver receives into chains without a request; how setup of a queue fails, or 0; what becomes of a frame. */
bool profile_scatters(const struct profile *profile, uint32_t buffer, uint16_t mtu);
int profile_refuses(const struct profile *profile, uint32_t buffer, uint16_t mtu, bool scatters);
struct pieces profile_receives(const struct profile *profile, uint32_t length, uint32_t buffer, uint16_t mtu, bool scatters);
/* How a call refuses these values, or 0. */
int profile_pause_check(const struct profile *profile, uint8_t call, const struct pause_values *values);
struct card *card_new(const struct profile *profile, uint16_t rings, uint16_t descriptors, uint64_t rate);
void card_free(struct card *card);
/* Both in picoseconds of the model; `sent` is called once for each frame that has left, in the order of the queue. */
typedef void (*sent_fn)(void *context, uint16_t queue);
void card_advance(struct card *card, uint64_t now, sent_fn sent, void *context);
uint16_t card_burst(struct card *card, uint16_t queue, const uint32_t *lengths, uint16_t count);
uint64_t card_freed(const struct card *card, uint16_t queue);
/* Frames and wire bytes that the queue holds. */
uint64_t card_frames(const struct card *card, uint16_t queue);
uint64_t card_bytes(const struct card *card, uint16_t queue);
/* 1 full, 0 done, negative for no answer. */
int card_status(const struct card *card, uint16_t queue, uint16_t offset);
/* The directions in which link pause holds, and the priorities whose pauses the MAC honors. */
void card_honors(struct card *card, bool link, uint8_t priorities);
/* Takes note of a MAC control frame of the peer. */
void card_hears(struct card *card, const uint8_t *frame, uint32_t length, uint64_t now, sent_fn sent, void *context);

/* What a test reads; written to the file `report` as it changes. */
struct counts {
	uint64_t configures, starts, stops, closes, flaps, mtu_sets, mtu;
	uint64_t flow_ctrl_sets, pfc_sets, dcb_configures;
	uint64_t ring_bytes_most, ring_frames_most;
	uint64_t rx_frames, rx_control, rx_control_passed, rx_too_long, rx_split, rx_chained;
	uint64_t tx_frames, tx_control, tx_control_filtered, status_calls, rx_status_calls;
};

struct port;

struct tx_queue {
	struct port *port;
	uint16_t index, descriptors;
	struct rte_mbuf **held;
	uint64_t given, left, freed;
};

struct rx_queue {
	struct port *port;
	struct rte_mempool *pool;
	uint16_t index, descriptors;
	/* Buffers by descriptor; the first of a frame has its number of buffers. */
	struct rte_mbuf **ring;
	uint32_t head, tail, filled;
	uint32_t room;
	bool scatters;
};

struct wire {
	int fd;
	int index;
	struct mmsghdr *in;
	struct iovec *in_parts;
	uint8_t *in_bytes;
	uint8_t *in_control;
	struct rte_mbuf *out[BATCH];
	uint32_t waiting;
	uint64_t missed;
};

/* Private data of an ethdev. */
struct port {
	rte_spinlock_t lock;
	struct rte_eth_dev_data *data;
	const struct profile *profile;
	struct answers answers;
	struct card *card;
	struct wire wire;
	struct tx_queue *tx[QUEUES];
	struct rx_queue *rx[QUEUES];
	struct rte_ether_addr mac;
	uint64_t rate, scale, opened;
	/* The card's own MTU. */
	uint16_t mtu;
	/* RTE_ETH_FC_* of the link, priorities whose pause the MAC was set to honor, and whether it passes MAC control frames. */
	uint8_t link_pause, priorities;
	bool forward;
	/* The card was pulled out. */
	bool gone;
	/* File while which exists the device takes no frame; null for none. */
	char *stalls;
	struct rte_eth_stats stats;
	struct counts counts;
	int report;
};

/*
 * Takes the port's lock. Its holder may be in a system call, or kept from its core: whoever waits gives the core to others meanwhile. A waiter
 * that spins keeps the holder of another card's lock from the core, and with two switches on two cores each waited for the other's time slice.
 */
static inline void double_lock(struct port *port)
{
	while (rte_spinlock_trylock(&port->lock) == 0)
		sched_yield();
}

static inline void double_unlock(struct port *port)
{
	rte_spinlock_unlock(&port->lock);
}

/* A call during which the link may go down, as the peer sees it. */
void double_moment(struct port *port, enum moment moment);

/* bus.c */
extern int double_logtype;
#define DOUBLE_LOG(level, ...) rte_log(RTE_LOG_##level, double_logtype, "double: " __VA_ARGS__)

/* ethdev.c */
extern const struct eth_dev_ops double_operations;

/* probe.c */
int double_probe(struct rte_device *device, const char *arguments);
int double_remove(struct rte_device *device);

/* flow.c */
void double_honor(struct port *port);
bool double_passes_control(const struct port *port);
int double_pfc_queue_info(struct rte_eth_dev *dev, struct rte_eth_pfc_queue_info *info);
int double_flow_ctrl_get(struct rte_eth_dev *dev, struct rte_eth_fc_conf *conf);
int double_flow_ctrl_set(struct rte_eth_dev *dev, struct rte_eth_fc_conf *conf);
int double_pfc_set(struct rte_eth_dev *dev, struct rte_eth_pfc_conf *conf);
int double_get_dcb_info(struct rte_eth_dev *dev, struct rte_eth_dcb_info *info);

/* queues.c */
int double_rx_setup(struct rte_eth_dev *dev, uint16_t queue, uint16_t descriptors, unsigned int socket,
		    const struct rte_eth_rxconf *conf, struct rte_mempool *pool);
int double_tx_setup(struct rte_eth_dev *dev, uint16_t queue, uint16_t descriptors, unsigned int socket,
		    const struct rte_eth_txconf *conf);
void double_rx_release(struct rte_eth_dev *dev, uint16_t queue);
void double_tx_release(struct rte_eth_dev *dev, uint16_t queue);
void double_rxq_info(struct rte_eth_dev *dev, uint16_t queue, struct rte_eth_rxq_info *info);
int double_fill(struct rx_queue *queue);
void double_drain(struct port *port);

/* burst.c */
/* Lets the card send what it has sent by now; with the lock held. */
void double_advance(struct port *port);
uint16_t double_rx_burst(void *queue, struct rte_mbuf **mbufs, uint16_t count);
uint16_t double_tx_burst(void *queue, struct rte_mbuf **mbufs, uint16_t count);
int double_tx_status(void *queue, uint16_t offset);
int double_rx_status(void *queue, uint16_t offset);

/* wire.c: all under the port's lock */
int wire_open(struct wire *wire, const char *interface, struct rte_ether_addr *mac);
void wire_close(struct wire *wire);
void wire_send(struct port *port, struct rte_mbuf *mbuf);
void wire_flush(struct port *port);
/* Reads at most `most` frames into `in`; each has `msg_len` bytes at wire_frame(). */
uint32_t wire_read(struct wire *wire, uint32_t most);
uint8_t *wire_frame(struct wire *wire, uint32_t n, uint32_t *length);
bool wire_up(struct wire *wire);
bool wire_gone(struct wire *wire);
int wire_set_up(struct wire *wire, bool up);
int wire_set_mtu(struct wire *wire, uint16_t mtu);
uint64_t wire_missed(struct wire *wire);

/* report.c */
int report_open(const char *path);
void report_write(struct port *port);

#endif
