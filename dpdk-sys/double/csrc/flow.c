/* SPDX-License-Identifier: Apache-2.0 */
/* Flow control: what the driver answers, and what the MAC then does. */
#include "double.h"

/* True if the MAC stops for pauses; `set` is what a call set last. */
static bool honors(uint8_t kind, bool set)
{
	return kind == HONORS_ALWAYS || (kind != HONORS_NEVER && set);
}

static bool link_set(const struct port *port)
{
	return port->link_pause == RTE_ETH_FC_FULL || port->link_pause == RTE_ETH_FC_RX_PAUSE;
}

void double_honor(struct port *port)
{
	uint8_t all = honors(port->answers.honors_pfc, false) ? 0xff : 0;
	uint8_t priorities = honors(port->answers.honors_pfc, true) ? port->priorities : 0;

	if (port->card != NULL)
		card_honors(port->card, honors(port->answers.honors_link, link_set(port)), all | priorities);
}

bool double_passes_control(const struct port *port)
{
	switch (port->answers.received) {
	case RECEIVED_PASSED:
		return true;
	case RECEIVED_PASSED_IF_SET:
		return port->forward && !link_set(port) && port->priorities == 0;
	default:
		return false;
	}
}

int double_flow_ctrl_get(struct rte_eth_dev *dev, struct rte_eth_fc_conf *conf)
{
	struct port *port = dev->data->dev_private;

	if (port->answers.flow_ctrl_get != 0)
		return port->answers.flow_ctrl_get;
	conf->mode = (enum rte_eth_fc_mode)port->link_pause;
	conf->high_water = port->answers.water[0];
	conf->low_water = port->answers.water[1];
	conf->pause_time = 0xffff;
	conf->autoneg = 1;
	conf->mac_ctrl_frame_fwd = port->forward;
	return 0;
}

/* The driver's check of the values of a call, in DPDK's structure. */
static int check(const struct port *port, enum moment call, const struct rte_eth_fc_conf *conf)
{
	const struct pause_values values = {
		.high_water = conf->high_water,
		.low_water = conf->low_water,
		.pause_time = conf->pause_time,
		.send_xon = conf->send_xon,
		.forward = conf->mac_ctrl_frame_fwd != 0,
		.autoneg = conf->autoneg != 0,
		.pfc_on = port->priorities != 0,
		.link_pause_on = port->link_pause != RTE_ETH_FC_NONE,
	};

	return profile_pause_check(port->profile, (uint8_t)call, &values);
}

int double_flow_ctrl_set(struct rte_eth_dev *dev, struct rte_eth_fc_conf *conf)
{
	struct port *port = dev->data->dev_private;
	int rc = port->answers.flow_ctrl_set;

	double_lock(port);
	port->counts.flow_ctrl_sets++;
	if (rc == 0)
		rc = check(port, MOMENT_FLOW_CTRL_SET, conf);
	if (rc == 0) {
		port->link_pause = (uint8_t)conf->mode;
		port->forward = conf->mac_ctrl_frame_fwd != 0;
		double_honor(port);
		double_moment(port, MOMENT_FLOW_CTRL_SET);
	}
	report_write(port);
	double_unlock(port);
	return rc;
}

int double_pfc_set(struct rte_eth_dev *dev, struct rte_eth_pfc_conf *conf)
{
	struct port *port = dev->data->dev_private;
	int rc = port->answers.pfc_set;

	double_lock(port);
	port->counts.pfc_sets++;
	if (rc == 0)
		rc = check(port, MOMENT_PFC_SET, &conf->fc);
	if (rc == 0) {
		uint8_t bit = (uint8_t)(1u << (conf->priority & 7));
		bool on = conf->fc.mode == RTE_ETH_FC_FULL || conf->fc.mode == RTE_ETH_FC_RX_PAUSE;

		port->priorities = on ? port->priorities | bit : port->priorities & (uint8_t)~bit;
		port->forward = conf->fc.mac_ctrl_frame_fwd != 0;
		double_honor(port);
		double_moment(port, MOMENT_PFC_SET);
	}
	report_write(port);
	double_unlock(port);
	return rc;
}

int double_pfc_queue_info(struct rte_eth_dev *dev, struct rte_eth_pfc_queue_info *info)
{
	struct port *port = dev->data->dev_private;

	RTE_SET_USED(info);
	return port->answers.pfc_queue_info;
}

int double_get_dcb_info(struct rte_eth_dev *dev, struct rte_eth_dcb_info *info)
{
	const struct port *port = dev->data->dev_private;
	const struct answers *a = &port->answers;

	if (a->dcb_info != 0)
		return a->dcb_info;
	info->nb_tcs = a->dcb_classes;
	for (uint8_t i = 0; i < 8; i++) {
		info->prio_tc[i] = a->dcb_priorities[i];
		info->tc_queue.tc_txq[0][i].base = a->dcb_queues[i];
		info->tc_queue.tc_txq[0][i].nb_queue = i < a->dcb_classes;
	}
	return 0;
}
