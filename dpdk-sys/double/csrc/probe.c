/* SPDX-License-Identifier: Apache-2.0 */
/* Probe and removal of a device: its arguments, and the ethdev that it becomes. */
#include <stdlib.h>
#include <string.h>

#include <rte_kvargs.h>
#include <rte_malloc.h>

#include "double.h"

static uint64_t number(struct rte_kvargs *arguments, const char *key, uint64_t otherwise)
{
	const char *value = rte_kvargs_get(arguments, key);

	return value == NULL ? otherwise : strtoull(value, NULL, 10);
}

/* Fills in the private data from the arguments of the device. */
static int apply(struct port *port, struct rte_kvargs *arguments)
{
	const char *profile = rte_kvargs_get(arguments, "profile"), *interface = rte_kvargs_get(arguments, "iface");
	const char *lacks = rte_kvargs_get(arguments, "lacks"), *report = rte_kvargs_get(arguments, "report");
	const char *stalls = rte_kvargs_get(arguments, "stalls");
	int rc;

	if (profile == NULL || interface == NULL)
		return -EINVAL;
	port->profile = profile_find(profile, rte_kvargs_get(arguments, "other"));
	if (port->profile == NULL) {
		DOUBLE_LOG(ERR, "there is no profile %s\n", profile);
		return -EINVAL;
	}
	profile_answers(port->profile, &port->answers);
	port->rate = number(arguments, "speed", 100) * 1000000000u;
	port->scale = number(arguments, "time_scale", 1);
	if (port->answers.size != sizeof(port->answers) || port->rate == 0 || port->scale == 0)
		return -EINVAL;
	rc = lacks == NULL ? 0 : profile_lacks(port->profile, lacks);
	if (rc != 0)
		DOUBLE_LOG(ERR, "this machine lacks what %s needs: %s\n", port->answers.driver, lacks);
	if (rc == 0)
		rc = -(int)number(arguments, "probe", 0);
	if (rc != 0)
		return rc;
	port->mtu = RTE_ETHER_MTU;
	port->link_pause = port->answers.honors_link == HONORS_UNTIL_CLEARED ? RTE_ETH_FC_FULL : RTE_ETH_FC_NONE;
	port->priorities = port->answers.honors_pfc == HONORS_UNTIL_CLEARED ? 0xff : 0;
	rc = wire_open(&port->wire, interface, &port->mac);
	if (rc == 0 && report != NULL) {
		port->report = report_open(report);
		rc = port->report < 0 ? port->report : 0;
		if (rc != 0)
			wire_close(&port->wire);
	}
	if (rc == 0 && stalls != NULL)
		port->stalls = strdup(stalls);
	return rc;
}

int double_probe(struct rte_device *device, const char *text)
{
	struct rte_kvargs *arguments = rte_kvargs_parse(text, NULL);
	struct rte_eth_dev *dev;
	struct rte_driver *driver;
	struct port *port;
	int rc;

	if (arguments == NULL)
		return -EINVAL;
	dev = rte_eth_dev_allocate(device->name);
	port = rte_zmalloc("double", sizeof(*port), RTE_CACHE_LINE_SIZE);
	driver = calloc(1, sizeof(*driver));
	if (dev == NULL || port == NULL || driver == NULL) {
		rc = -ENOMEM;
		goto failed;
	}
	port->report = -1;
	rte_spinlock_init(&port->lock);
	rc = apply(port, arguments);
	if (rc != 0)
		goto failed;
	rte_kvargs_free(arguments);
	driver->name = port->answers.driver;
	device->driver = driver;
	dev->data->dev_private = port;
	dev->data->numa_node = device->numa_node;
	dev->data->mac_addrs = &port->mac;
	dev->data->promiscuous = 0;
	port->data = dev->data;
	dev->device = device;
	dev->dev_ops = &double_operations;
	dev->rx_pkt_burst = double_rx_burst;
	dev->tx_pkt_burst = double_tx_burst;
	dev->tx_descriptor_status = port->answers.tx_status ? double_tx_status : NULL;
	dev->rx_descriptor_status = port->answers.rx_status ? double_rx_status : NULL;
	report_write(port);
	rte_eth_dev_probing_finish(dev);
	return 0;
failed:
	rte_kvargs_free(arguments);
	free(driver);
	rte_free(port);
	if (dev != NULL)
		rte_eth_dev_release_port(dev);
	return rc;
}

int double_remove(struct rte_device *device)
{
	struct rte_eth_dev *dev = rte_eth_dev_allocated(device->name);
	int rc = 0;

	/* A port that is closed already has no ethdev. */
	if (dev != NULL) {
		if (dev->data->dev_started)
			rte_eth_dev_stop(dev->data->port_id);
		rc = rte_eth_dev_close(dev->data->port_id);
	}
	free((void *)(uintptr_t)device->driver);
	device->driver = NULL;
	return rc;
}
