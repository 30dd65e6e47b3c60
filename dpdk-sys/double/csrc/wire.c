/* SPDX-License-Identifier: Apache-2.0 */
/* The wire: a packet socket on a kernel interface, with VLAN tags put back where the kernel took them off. */
#define _GNU_SOURCE
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "double.h"

#define CONTROL CMSG_SPACE(sizeof(struct tpacket_auxdata))
/* Space in front of a frame, where its tag goes back in. */
#define FRONT 4
/* What stands on the line: frames wait here while nobody polls. */
#define SOCKET_BYTES (64 << 20)

static int interface_request(struct wire *wire, unsigned long request, struct ifreq *with)
{
	with->ifr_ifindex = wire->index;
	if (ioctl(wire->fd, SIOCGIFNAME, with) < 0 || ioctl(wire->fd, request, with) < 0)
		return -errno;
	return 0;
}

static int set(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value));
}

int wire_open(struct wire *wire, const char *interface, struct rte_ether_addr *mac)
{
	struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	struct packet_mreq promiscuous = {.mr_type = PACKET_MR_PROMISC};
	struct ifreq request = {0};
	int rc;

	memset(wire, 0, sizeof(*wire));
	wire->index = (int)if_nametoindex(interface);
	wire->fd = -1;
	if (wire->index == 0)
		return -ENODEV;
	wire->fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (wire->fd < 0)
		return -errno;
	address.sll_ifindex = wire->index;
	promiscuous.mr_ifindex = wire->index;
	if (set(wire->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1) < 0 || set(wire->fd, SOL_PACKET, PACKET_AUXDATA, 1) < 0 ||
	    set(wire->fd, SOL_PACKET, PACKET_QDISC_BYPASS, 1) < 0 ||
	    set(wire->fd, SOL_SOCKET, SO_RCVBUFFORCE, SOCKET_BYTES) < 0 ||
	    set(wire->fd, SOL_SOCKET, SO_SNDBUFFORCE, SOCKET_BYTES) < 0 ||
	    setsockopt(wire->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof(promiscuous)) < 0 ||
	    bind(wire->fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		rc = -errno;
		wire_close(wire);
		return rc;
	}
	rc = interface_request(wire, SIOCGIFHWADDR, &request);
	if (rc == 0)
		memcpy(mac->addr_bytes, request.ifr_hwaddr.sa_data, sizeof(mac->addr_bytes));
	wire->in = calloc(BATCH, sizeof(*wire->in));
	wire->in_parts = calloc(BATCH, sizeof(*wire->in_parts));
	wire->in_bytes = malloc((size_t)BATCH * (LONGEST + FRONT));
	wire->in_control = calloc(BATCH, CONTROL);
	if (wire->in == NULL || wire->in_parts == NULL || wire->in_bytes == NULL || wire->in_control == NULL)
		rc = -ENOMEM;
	if (rc != 0)
		wire_close(wire);
	return rc;
}

void wire_close(struct wire *wire)
{
	if (wire->fd >= 0)
		close(wire->fd);
	wire->fd = -1;
	free(wire->in);
	free(wire->in_parts);
	free(wire->in_bytes);
	free(wire->in_control);
	wire->in = NULL;
	wire->in_parts = NULL;
	wire->in_bytes = NULL;
	wire->in_control = NULL;
}

void wire_send(struct port *port, struct rte_mbuf *mbuf)
{
	port->wire.out[port->wire.waiting++] = mbuf;
	if (port->wire.waiting == BATCH)
		wire_flush(port);
}

void wire_flush(struct port *port)
{
	struct wire *wire = &port->wire;
	struct mmsghdr messages[BATCH] = {0};
	struct iovec parts[BATCH][8];
	uint32_t done = 0;

	for (uint32_t i = 0; i < wire->waiting; i++) {
		uint32_t n = 0;

		for (struct rte_mbuf *part = wire->out[i]; part != NULL && n < 8; part = part->next, n++)
			parts[i][n] = (struct iovec){rte_pktmbuf_mtod(part, void *), part->data_len};
		messages[i].msg_hdr.msg_iov = parts[i];
		messages[i].msg_hdr.msg_iovlen = n;
	}
	while (done < wire->waiting) {
		int sent = sendmmsg(wire->fd, messages + done, wire->waiting - done, 0);

		/* The frame is lost on the wire, as one that meets no receiver is. */
		done += sent <= 0 ? 1 : (uint32_t)sent;
	}
	wire->waiting = 0;
}

uint32_t wire_read(struct wire *wire, uint32_t most)
{
	int count;

	for (uint32_t i = 0; i < most; i++) {
		wire->in_parts[i] = (struct iovec){wire->in_bytes + (size_t)i * (LONGEST + FRONT) + FRONT, LONGEST};
		wire->in[i].msg_hdr = (struct msghdr){
			.msg_iov = &wire->in_parts[i],
			.msg_iovlen = 1,
			.msg_control = wire->in_control + (size_t)i * CONTROL,
			.msg_controllen = CONTROL,
		};
	}
	count = recvmmsg(wire->fd, wire->in, most, MSG_DONTWAIT | MSG_TRUNC, NULL);
	return count < 0 ? 0 : (uint32_t)count;
}

uint8_t *wire_frame(struct wire *wire, uint32_t n, uint32_t *length)
{
	struct msghdr *message = &wire->in[n].msg_hdr;
	uint8_t *frame = message->msg_iov->iov_base;

	*length = RTE_MIN(wire->in[n].msg_len, (uint32_t)LONGEST);
	for (struct cmsghdr *control = CMSG_FIRSTHDR(message); control != NULL; control = CMSG_NXTHDR(message, control)) {
		struct tpacket_auxdata auxiliary;

		if (control->cmsg_level != SOL_PACKET || control->cmsg_type != PACKET_AUXDATA)
			continue;
		memcpy(&auxiliary, CMSG_DATA(control), sizeof(auxiliary));
		if ((auxiliary.tp_status & TP_STATUS_VLAN_VALID) == 0)
			continue;
		uint16_t tpid = htons((auxiliary.tp_status & TP_STATUS_VLAN_TPID_VALID) != 0 ? auxiliary.tp_vlan_tpid
											      : ETH_P_8021Q);
		uint16_t tci = htons(auxiliary.tp_vlan_tci);

		memmove(frame - FRONT, frame, 12);
		frame -= FRONT;
		memcpy(frame + 12, &tpid, sizeof(tpid));
		memcpy(frame + 14, &tci, sizeof(tci));
		*length += FRONT;
	}
	return frame;
}

bool wire_up(struct wire *wire)
{
	struct ifreq request = {0};

	return interface_request(wire, SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_UP) != 0 &&
	       (request.ifr_flags & IFF_RUNNING) != 0;
}

bool wire_gone(struct wire *wire)
{
	struct ifreq request = {.ifr_ifindex = wire->index};

	return ioctl(wire->fd, SIOCGIFNAME, &request) < 0 && errno == ENODEV;
}

int wire_set_up(struct wire *wire, bool up)
{
	struct ifreq request = {0};
	int rc = interface_request(wire, SIOCGIFFLAGS, &request);

	if (rc != 0)
		return rc;
	request.ifr_flags = (short)(up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
	return ioctl(wire->fd, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
}

int wire_set_mtu(struct wire *wire, uint16_t mtu)
{
	struct ifreq request = {0};
	int rc = interface_request(wire, SIOCGIFMTU, &request);

	if (rc != 0 || request.ifr_mtu == mtu)
		return rc;
	request.ifr_mtu = mtu;
	return ioctl(wire->fd, SIOCSIFMTU, &request) < 0 ? -errno : 0;
}

uint64_t wire_missed(struct wire *wire)
{
	struct tpacket_stats stats = {0};
	socklen_t size = sizeof(stats);

	/* Each reading zeroes the kernel's count. */
	if (getsockopt(wire->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &size) == 0)
		wire->missed += stats.tp_drops;
	return wire->missed;
}
