/* SPDX-License-Identifier: Apache-2.0 */
/* Rings of both directions: what they hold, and how they are set up, filled and emptied. */
#include <rte_malloc.h>

#include "double.h"

int double_fill(struct rx_queue *queue)
{
	queue->head = queue->tail = queue->filled = 0;
	for (uint16_t i = 0; i < queue->descriptors; i++) {
		if (queue->ring[i] != NULL)
			rte_pktmbuf_free_seg(queue->ring[i]);
		queue->ring[i] = rte_pktmbuf_alloc(queue->pool);
		if (queue->ring[i] == NULL)
			return -ENOMEM;
	}
	return 0;
}

static void empty_rx(struct rx_queue *queue)
{
	for (uint16_t i = 0; i < queue->descriptors; i++) {
		if (queue->ring[i] != NULL)
			rte_pktmbuf_free_seg(queue->ring[i]);
		queue->ring[i] = NULL;
	}
	queue->head = queue->tail = queue->filled = 0;
}

static void empty_tx(struct tx_queue *queue)
{
	for (; queue->freed < queue->given; queue->freed++)
		rte_pktmbuf_free(queue->held[queue->freed % queue->descriptors]);
	queue->given = queue->left = queue->freed = 0;
}

void double_drain(struct port *port)
{
	for (uint16_t i = 0; i < QUEUES; i++) {
		if (port->tx[i] != NULL)
			empty_tx(port->tx[i]);
		if (port->rx[i] != NULL)
			empty_rx(port->rx[i]);
	}
}

int double_rx_setup(struct rte_eth_dev *dev, uint16_t index, uint16_t descriptors, unsigned int socket,
		    const struct rte_eth_rxconf *conf, struct rte_mempool *pool)
{
	struct port *port = dev->data->dev_private;
	uint32_t room = (uint32_t)rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM;
	bool requested = ((dev->data->dev_conf.rxmode.offloads | conf->offloads) & RTE_ETH_RX_OFFLOAD_SCATTER) != 0;
	bool scatters = requested || profile_scatters(port->profile, room, dev->data->mtu);
	int rc = profile_refuses(port->profile, room, dev->data->mtu, scatters);
	struct rx_queue *queue;

	RTE_SET_USED(socket);
	if (rc != 0)
		return rc;
	double_rx_release(dev, index);
	queue = rte_zmalloc("double-rx", sizeof(*queue) + descriptors * sizeof(*queue->ring), RTE_CACHE_LINE_SIZE);
	if (queue == NULL)
		return -ENOMEM;
	queue->port = port;
	queue->index = index;
	queue->descriptors = descriptors;
	queue->pool = pool;
	queue->room = room;
	queue->scatters = scatters;
	queue->ring = (struct rte_mbuf **)(queue + 1);
	port->rx[index] = queue;
	dev->data->rx_queues[index] = queue;
	return 0;
}

int double_tx_setup(struct rte_eth_dev *dev, uint16_t index, uint16_t descriptors, unsigned int socket,
		    const struct rte_eth_txconf *conf)
{
	struct port *port = dev->data->dev_private;
	struct tx_queue *queue;

	RTE_SET_USED(socket);
	RTE_SET_USED(conf);
	double_tx_release(dev, index);
	queue = rte_zmalloc("double-tx", sizeof(*queue) + descriptors * sizeof(*queue->held), RTE_CACHE_LINE_SIZE);
	if (queue == NULL)
		return -ENOMEM;
	queue->port = port;
	queue->index = index;
	queue->descriptors = descriptors;
	queue->held = (struct rte_mbuf **)(queue + 1);
	port->tx[index] = queue;
	dev->data->tx_queues[index] = queue;
	return 0;
}

void double_rx_release(struct rte_eth_dev *dev, uint16_t index)
{
	struct port *port = dev->data->dev_private;

	if (port->rx[index] == NULL)
		return;
	empty_rx(port->rx[index]);
	rte_free(port->rx[index]);
	port->rx[index] = NULL;
	dev->data->rx_queues[index] = NULL;
}

void double_tx_release(struct rte_eth_dev *dev, uint16_t index)
{
	struct port *port = dev->data->dev_private;

	if (port->tx[index] == NULL)
		return;
	empty_tx(port->tx[index]);
	rte_free(port->tx[index]);
	port->tx[index] = NULL;
	dev->data->tx_queues[index] = NULL;
}

void double_rxq_info(struct rte_eth_dev *dev, uint16_t index, struct rte_eth_rxq_info *info)
{
	struct port *port = dev->data->dev_private;

	info->mp = port->rx[index]->pool;
	info->nb_desc = port->rx[index]->descriptors;
	info->scattered_rx = port->rx[index]->scatters;
	info->conf.offloads = dev->data->dev_conf.rxmode.offloads;
}
