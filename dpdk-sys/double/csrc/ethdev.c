/* SPDX-License-Identifier: Apache-2.0 */
/* The ethdev of a device: its description, and the calls of control. */
#include <stdlib.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_ether.h>

#include "double.h"

void double_moment(struct port *port, enum moment moment)
{
	port->counts.flaps += port->card != NULL && (port->answers.flaps & 1u << moment) != 0;
}

/* The card takes over an MTU, and so does the kernel's interface of the same card. */
static int take_mtu(struct port *port, uint16_t mtu)
{
	int rc = port->answers.interface ? wire_set_mtu(&port->wire, mtu) : 0;

	if (rc == 0)
		port->mtu = mtu;
	port->counts.mtu = port->mtu;
	return rc;
}

static int configure(struct rte_eth_dev *dev)
{
	struct port *port = dev->data->dev_private;
	int rc = 0;

	double_lock(port);
	port->counts.configures++;
	port->counts.dcb_configures += (dev->data->dev_conf.txmode.mq_mode & RTE_ETH_MQ_TX_DCB) != 0;
	if (port->answers.mtu == MTU_CONFIGURE)
		rc = take_mtu(port, dev->data->mtu);
	double_moment(port, MOMENT_CONFIGURE);
	report_write(port);
	double_unlock(port);
	return rc;
}

static int start(struct rte_eth_dev *dev)
{
	struct port *port = dev->data->dev_private;
	struct rte_eth_dev_data *data = dev->data;
	int rc = 0;

	double_lock(port);
	port->opened = rte_rdtsc();
	if (port->answers.mtu == MTU_START)
		rc = take_mtu(port, data->mtu);
	for (uint16_t i = 0; i < data->nb_rx_queues && rc == 0; i++)
		rc = double_fill(port->rx[i]);
	if (rc == 0) {
		port->card = card_new(port->profile, data->nb_tx_queues, port->tx[0]->descriptors, port->rate);
		port->counts.starts++;
		double_honor(port);
	}
	report_write(port);
	double_unlock(port);
	for (uint16_t i = 0; i < data->nb_rx_queues; i++)
		data->rx_queue_state[i] = RTE_ETH_QUEUE_STATE_STARTED;
	for (uint16_t i = 0; i < data->nb_tx_queues; i++)
		data->tx_queue_state[i] = RTE_ETH_QUEUE_STATE_STARTED;
	return rc;
}

static int stop(struct rte_eth_dev *dev)
{
	struct port *port = dev->data->dev_private;
	struct rte_eth_dev_data *data = dev->data;

	double_lock(port);
	data->dev_started = 0;
	double_moment(port, MOMENT_STOP);
	double_drain(port);
	card_free(port->card);
	port->card = NULL;
	port->counts.stops++;
	report_write(port);
	double_unlock(port);
	for (uint16_t i = 0; i < data->nb_rx_queues; i++)
		data->rx_queue_state[i] = RTE_ETH_QUEUE_STATE_STOPPED;
	for (uint16_t i = 0; i < data->nb_tx_queues; i++)
		data->tx_queue_state[i] = RTE_ETH_QUEUE_STATE_STOPPED;
	return 0;
}

static int close_port(struct rte_eth_dev *dev)
{
	struct port *port = dev->data->dev_private;

	for (uint16_t i = 0; i < QUEUES; i++) {
		double_rx_release(dev, i);
		double_tx_release(dev, i);
	}
	port->counts.closes++;
	report_write(port);
	if (port->report >= 0)
		close(port->report);
	wire_close(&port->wire);
	free(port->stalls);
	port->stalls = NULL;
	/* The address is in the private data, which ethdev frees. */
	dev->data->mac_addrs = NULL;
	return 0;
}

static struct rte_eth_desc_lim limits(const uint16_t *least_most_multiple)
{
	return (struct rte_eth_desc_lim){
		.nb_min = least_most_multiple[0],
		.nb_max = least_most_multiple[1],
		.nb_align = least_most_multiple[2],
	};
}

static int infos_get(struct rte_eth_dev *dev, struct rte_eth_dev_info *info)
{
	const struct port *port = dev->data->dev_private;
	const struct answers *a = &port->answers;

	info->min_mtu = a->min_mtu;
	info->max_mtu = a->max_mtu;
	info->max_rx_pktlen = a->max_rx_pktlen;
	info->min_rx_bufsize = a->min_rx_bufsize;
	info->max_mac_addrs = 1;
	info->max_rx_queues = RTE_MIN(a->rx_queues, (uint16_t)QUEUES);
	info->max_tx_queues = RTE_MIN(a->tx_queues, (uint16_t)QUEUES);
	info->rx_offload_capa = a->rx_offloads;
	info->tx_offload_capa = a->tx_offloads;
	info->flow_type_rss_offloads = a->rss;
	info->if_index = a->interface ? (unsigned int)port->wire.index : 0;
	info->rx_desc_lim = limits(a->rx_desc);
	info->tx_desc_lim = limits(a->tx_desc);
	info->default_rxconf.rx_drop_en = a->rx_drop_en;
	info->default_txconf.tx_rs_thresh = a->tx_rs_thresh;
	info->default_txconf.tx_free_thresh = a->tx_free_thresh;
	info->default_rxportconf = (struct rte_eth_dev_portconf){.ring_size = a->rx_port[0], .burst_size = a->rx_port[1]};
	info->default_txportconf = (struct rte_eth_dev_portconf){.ring_size = a->tx_port[0], .burst_size = a->tx_port[1]};
	info->speed_capa = RTE_ETH_LINK_SPEED_10G | RTE_ETH_LINK_SPEED_25G | RTE_ETH_LINK_SPEED_100G;
	return 0;
}

/* A card whose interface is deleted is pulled out: the system wants it back, as vfio says it. */
static void pulled_out(struct rte_eth_dev *dev)
{
	struct port *port = dev->data->dev_private;

	if (port->gone || !wire_gone(&port->wire))
		return;
	port->gone = true;
	rte_dev_event_callback_process(dev->device->name, RTE_DEV_EVENT_REMOVE);
}

static int link_update(struct rte_eth_dev *dev, int wait)
{
	struct port *port = dev->data->dev_private;
	struct rte_eth_link link = {
		.link_speed = (uint32_t)(port->rate / 1000000),
		.link_duplex = RTE_ETH_LINK_FULL_DUPLEX,
		.link_autoneg = RTE_ETH_LINK_AUTONEG,
		.link_status = dev->data->dev_started && wire_up(&port->wire) ? RTE_ETH_LINK_UP : RTE_ETH_LINK_DOWN,
	};

	RTE_SET_USED(wait);
	pulled_out(dev);
	return rte_eth_linkstatus_set(dev, &link);
}

/* The link goes down for the peer if the kernel's interface does. */
static int set_link(struct rte_eth_dev *dev, bool up)
{
	struct port *port = dev->data->dev_private;
	int rc = up ? 0 : port->answers.link_down;

	if (rc == 0 && port->answers.peer_sees)
		rc = wire_set_up(&port->wire, up);
	double_lock(port);
	port->counts.flaps += !up && rc == 0 && port->answers.peer_sees;
	report_write(port);
	double_unlock(port);
	return rc;
}

static int set_link_up(struct rte_eth_dev *dev)
{
	return set_link(dev, true);
}

static int set_link_down(struct rte_eth_dev *dev)
{
	return set_link(dev, false);
}

static int promiscuous(struct rte_eth_dev *dev)
{
	RTE_SET_USED(dev);
	return 0;
}

static int mac_addr_set(struct rte_eth_dev *dev, struct rte_ether_addr *address)
{
	struct port *port = dev->data->dev_private;

	port->mac = *address;
	return 0;
}

static int mtu_set(struct rte_eth_dev *dev, uint16_t mtu)
{
	struct port *port = dev->data->dev_private;
	int rc;

	double_lock(port);
	port->counts.mtu_sets++;
	rc = take_mtu(port, mtu);
	double_moment(port, MOMENT_MTU_SET);
	report_write(port);
	double_unlock(port);
	return rc;
}

static int stats_get(struct rte_eth_dev *dev, struct rte_eth_stats *stats)
{
	struct port *port = dev->data->dev_private;

	double_lock(port);
	double_advance(port);
	*stats = port->stats;
	stats->imissed = wire_missed(&port->wire);
	stats->rx_nombuf = dev->data->rx_mbuf_alloc_failed;
	report_write(port);
	double_unlock(port);
	return 0;
}

static int stats_reset(struct rte_eth_dev *dev)
{
	struct port *port = dev->data->dev_private;

	double_lock(port);
	port->stats = (struct rte_eth_stats){0};
	(void)wire_missed(&port->wire);
	port->wire.missed = 0;
	dev->data->rx_mbuf_alloc_failed = 0;
	double_unlock(port);
	return 0;
}

const struct eth_dev_ops double_operations = {
	.dev_configure = configure,
	.dev_start = start,
	.dev_stop = stop,
	.dev_close = close_port,
	.dev_infos_get = infos_get,
	.rx_queue_setup = double_rx_setup,
	.tx_queue_setup = double_tx_setup,
	.rx_queue_release = double_rx_release,
	.tx_queue_release = double_tx_release,
	.rxq_info_get = double_rxq_info,
	.link_update = link_update,
	.dev_set_link_up = set_link_up,
	.dev_set_link_down = set_link_down,
	.promiscuous_enable = promiscuous,
	.promiscuous_disable = promiscuous,
	.mac_addr_set = mac_addr_set,
	.mtu_set = mtu_set,
	.stats_get = stats_get,
	.stats_reset = stats_reset,
	.flow_ctrl_get = double_flow_ctrl_get,
	.flow_ctrl_set = double_flow_ctrl_set,
	.priority_flow_ctrl_set = double_pfc_set,
	.priority_flow_ctrl_queue_info_get = double_pfc_queue_info,
	.get_dcb_info = double_get_dcb_info,
};
