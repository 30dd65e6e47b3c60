/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of the fast path. Each first lets the card do what it did since the last one: frames that have left go to the socket, frames that
 * came are put into the rings.
 */
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_ether.h>

#include "double.h"

/* EtherType of pause frames (IEEE 802.3, MAC control). */
#define MAC_CONTROL 0x8808

/* Time of the model, in picoseconds: of the TSC since the start, divided by the scale. */
static uint64_t now(const struct port *port)
{
	unsigned __int128 cycles = rte_rdtsc() - port->opened;

	return (uint64_t)(cycles * 1000000000000u / rte_get_tsc_hz() / port->scale);
}

static uint16_t type_of(const uint8_t *frame)
{
	return (uint16_t)(frame[12] << 8 | frame[13]);
}

/* The card has sent the oldest frame of the queue. */
static void sent(void *context, uint16_t index)
{
	struct port *port = context;
	struct tx_queue *queue = port->tx[index];
	struct rte_mbuf *mbuf = queue->held[queue->left++ % queue->descriptors];
	bool control = type_of(rte_pktmbuf_mtod(mbuf, const uint8_t *)) == MAC_CONTROL;

	port->counts.tx_control += control;
	if (control && port->answers.sent == SENT_FILTERED) {
		port->counts.tx_control_filtered++;
		return;
	}
	port->counts.tx_frames++;
	port->stats.opackets++;
	port->stats.obytes += mbuf->pkt_len;
	wire_send(port, mbuf);
}

/* The queue of a frame: by the addresses and ports of IPv4 and IPv6, as RSS does, else the first. */
static struct rx_queue *spread(struct port *port, const uint8_t *frame, uint32_t length)
{
	uint16_t queues = port->data->nb_rx_queues, type = type_of(frame);
	uint32_t from = 14, hash = 0x811c9dc5u, end;

	if (type == RTE_ETHER_TYPE_VLAN && length >= 18) {
		type = (uint16_t)(frame[16] << 8 | frame[17]);
		from = 18;
	}
	if (queues < 2 || (type != RTE_ETHER_TYPE_IPV4 && type != RTE_ETHER_TYPE_IPV6))
		return port->rx[0];
	end = from + (type == RTE_ETHER_TYPE_IPV4 ? 24 : 44);
	from += type == RTE_ETHER_TYPE_IPV4 ? 12 : 8;
	for (; from < end && from < length; from++)
		hash = (hash ^ frame[from]) * 0x01000193u;
	return port->rx[(hash >> 16) % queues];
}

/* Copies `length` bytes into the next descriptor, as the next buffer of `first`, or as a frame of its own. */
static struct rte_mbuf *into(struct rx_queue *queue, struct rte_mbuf *first, const uint8_t *bytes, uint32_t length)
{
	struct rte_mbuf *mbuf = queue->ring[queue->tail], *last = first;

	queue->tail = (queue->tail + 1) % queue->descriptors;
	queue->filled++;
	memcpy(rte_pktmbuf_mtod(mbuf, uint8_t *), bytes, length);
	mbuf->data_len = (uint16_t)length;
	mbuf->pkt_len = length;
	mbuf->port = queue->port->data->port_id;
	if (first == NULL)
		return mbuf;
	while (last->next != NULL)
		last = last->next;
	last->next = mbuf;
	first->nb_segs++;
	first->pkt_len += length;
	return first;
}

static void receive(struct port *port, const uint8_t *frame, uint32_t length, uint64_t time)
{
	struct rx_queue *queue = spread(port, frame, length);
	struct pieces pieces = profile_receives(port->profile, length, queue->room, port->mtu, queue->scatters);
	struct rte_mbuf *first = NULL;

	if (pieces.lost) {
		port->counts.rx_too_long++;
		port->stats.ierrors++;
		return;
	}
	if (type_of(frame) == MAC_CONTROL) {
		port->counts.rx_control++;
		card_hears(port->card, frame, length, time, sent, port);
		if (!double_passes_control(port))
			return;
		port->counts.rx_control_passed++;
	}
	port->counts.rx_frames++;
	port->stats.ipackets++;
	port->stats.ibytes += length;
	port->counts.rx_split += length > pieces.each && !pieces.chained;
	port->counts.rx_chained += length > pieces.each && pieces.chained;
	for (uint32_t at = 0; at < length; at += pieces.each)
		first = into(queue, pieces.chained ? first : NULL, frame + at, RTE_MIN(pieces.each, length - at));
}

/* Frames that every ring has room for, of up to eight buffers each. */
static uint32_t room(const struct port *port)
{
	uint32_t least = BATCH;

	for (uint16_t i = 0; i < port->data->nb_rx_queues; i++) {
		const struct rx_queue *queue = port->rx[i];

		least = RTE_MIN(least, (queue->descriptors - queue->filled) / 8);
	}
	return least;
}

/* Lets the card do what it did until now; with the lock held. */
static void pump(struct port *port, bool reads)
{
	uint64_t time = now(port);

	card_advance(port->card, time, sent, port);
	if (reads) {
		uint32_t most = room(port), count = most == 0 ? 0 : wire_read(&port->wire, most);

		for (uint32_t i = 0; i < count; i++) {
			uint32_t length;
			uint8_t *frame = wire_frame(&port->wire, i, &length);

			if (length >= RTE_ETHER_HDR_LEN)
				receive(port, frame, length, time);
		}
	}
	wire_flush(port);
}

void double_advance(struct port *port)
{
	if (port->card != NULL)
		pump(port, false);
}

uint16_t double_rx_burst(void *rx, struct rte_mbuf **mbufs, uint16_t count)
{
	struct rx_queue *queue = rx;
	struct port *port = queue->port;
	uint16_t n = 0;

	double_lock(port);
	pump(port, true);
	for (; n < count && queue->filled > 0; n++) {
		struct rte_mbuf *first = queue->ring[queue->head], *fresh[LONGEST / 64];
		uint16_t buffers = first->nb_segs;

		/* As drivers do: the frame stays until there are buffers in its place. */
		if (rte_pktmbuf_alloc_bulk(queue->pool, fresh, buffers) != 0) {
			port->data->rx_mbuf_alloc_failed++;
			break;
		}
		for (uint16_t i = 0; i < buffers; i++) {
			queue->ring[queue->head] = fresh[i];
			queue->head = (queue->head + 1) % queue->descriptors;
		}
		queue->filled -= buffers;
		mbufs[n] = first;
	}
	double_unlock(port);
	return n;
}

/* Bytes of a frame on the wire: padding, FCS, preamble and the gap. */
static uint32_t wire_bytes(const struct rte_mbuf *mbuf)
{
	return RTE_MAX(mbuf->pkt_len, 60u) + 24;
}

/* A test wants the device to take no frame. */
static bool stalls(const struct port *port)
{
	return port->stalls != NULL && access(port->stalls, F_OK) == 0;
}

uint16_t double_tx_burst(void *tx, struct rte_mbuf **mbufs, uint16_t count)
{
	struct tx_queue *queue = tx;
	struct port *port = queue->port;
	uint32_t lengths[count + 1];
	uint64_t freed, bytes, frames;
	uint16_t taken;

	double_lock(port);
	pump(port, false);
	for (uint16_t i = 0; i < count; i++)
		lengths[i] = wire_bytes(mbufs[i]);
	taken = stalls(port) ? 0 : card_burst(port->card, queue->index, lengths, count);
	freed = card_freed(port->card, queue->index);
	for (; queue->freed < freed; queue->freed++)
		rte_pktmbuf_free(queue->held[queue->freed % queue->descriptors]);
	for (uint16_t i = 0; i < taken; i++)
		queue->held[queue->given++ % queue->descriptors] = mbufs[i];
	bytes = card_bytes(port->card, queue->index);
	frames = card_frames(port->card, queue->index);
	if (bytes > port->counts.ring_bytes_most || frames > port->counts.ring_frames_most) {
		port->counts.ring_bytes_most = RTE_MAX(bytes, port->counts.ring_bytes_most);
		port->counts.ring_frames_most = RTE_MAX(frames, port->counts.ring_frames_most);
		report_write(port);
	}
	double_unlock(port);
	return taken;
}

int double_tx_status(void *tx, uint16_t offset)
{
	struct tx_queue *queue = tx;
	struct port *port = queue->port;
	int status;

	double_lock(port);
	pump(port, false);
	port->counts.status_calls++;
	status = card_status(port->card, queue->index, offset);
	double_unlock(port);
	if (status < 0)
		return -EINVAL;
	return status == 1 ? RTE_ETH_TX_DESC_FULL : RTE_ETH_TX_DESC_DONE;
}

int double_rx_status(void *rx, uint16_t offset)
{
	struct rx_queue *queue = rx;
	struct port *port = queue->port;
	bool done;

	if (offset >= queue->descriptors)
		return -EINVAL;
	double_lock(port);
	port->counts.rx_status_calls++;
	done = offset < queue->filled;
	double_unlock(port);
	return done ? RTE_ETH_RX_DESC_DONE : RTE_ETH_RX_DESC_AVAIL;
}
