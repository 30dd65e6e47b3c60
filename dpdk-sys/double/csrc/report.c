/* SPDX-License-Identifier: Apache-2.0 */
/* The file that a test reads: a line `name value` for each count, always of the same length, so that each write replaces the last. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "double.h"

int report_open(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	return fd < 0 ? -errno : fd;
}

void report_write(struct port *port)
{
	const struct counts *c = &port->counts;
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = {
		{"configures", c->configures},
		{"dcb_configures", c->dcb_configures},
		{"starts", c->starts},
		{"stops", c->stops},
		{"closes", c->closes},
		{"flaps", c->flaps},
		{"mtu_sets", c->mtu_sets},
		{"mtu", c->mtu},
		{"flow_ctrl_sets", c->flow_ctrl_sets},
		{"pfc_sets", c->pfc_sets},
		{"ring_bytes_most", c->ring_bytes_most},
		{"ring_frames_most", c->ring_frames_most},
		{"rx_frames", c->rx_frames},
		{"rx_control", c->rx_control},
		{"rx_control_passed", c->rx_control_passed},
		{"rx_too_long", c->rx_too_long},
		{"rx_split", c->rx_split},
		{"rx_chained", c->rx_chained},
		{"tx_frames", c->tx_frames},
		{"tx_control", c->tx_control},
		{"tx_control_filtered", c->tx_control_filtered},
		{"status_calls", c->status_calls},
		{"rx_status_calls", c->rx_status_calls},
	};
	char text[4096];
	size_t length = 0;

	if (port->report < 0)
		return;
	for (size_t i = 0; i < RTE_DIM(rows); i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%-20s %20" PRIu64 "\n", rows[i].name,
					   rows[i].value);
	/* A test that finds nothing says so itself. */
	(void)!pwrite(port->report, text, length, 0);
}
