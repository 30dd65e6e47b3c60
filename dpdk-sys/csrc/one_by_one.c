/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of a veth one by one.
 *
 * A kernel host sends TCP in pieces larger than the MTU, for its card to cut (TSO). A veth cuts nothing: it hands the whole to a packet socket,
 * which has no room for it. As long as the receiving end has an XDP program, the kernel takes TSO away from the sending end, wherever that is
 * (veth_fix_features), so this attaches a program that lets everything pass. It goes with its descriptor.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim.h"

#define PROGRAM_NAME "npcc_pass"

static int is_veth(const char *interface)
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	struct ifreq request = {.ifr_data = (void *)&info};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int veth;

	if (fd < 0)
		return 0;
	strncpy(request.ifr_name, interface, sizeof(request.ifr_name) - 1);
	veth = ioctl(fd, SIOCETHTOOL, &request) == 0 && strcmp(info.driver, "veth") == 0;
	close(fd);
	return veth;
}

static int bpf(int command, union bpf_attr *attr)
{
	int fd = (int)syscall(SYS_bpf, command, attr, sizeof(*attr));

	return fd < 0 ? -errno : fd;
}

int npcc_one_by_one(const char *interface)
{
	const struct bpf_insn pass[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS},
		{.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr load;
	union bpf_attr attach;
	unsigned int index = if_nametoindex(interface);
	int program, link;

	/* A name that is too long is cut in is_veth(), and has no index. */
	if (index == 0 || !is_veth(interface))
		return -ENODEV;
	/* An initializer may leave the octets behind its member as they are, which the kernel refuses. */
	memset(&load, 0, sizeof(load));
	load.prog_type = BPF_PROG_TYPE_XDP;
	load.insn_cnt = sizeof(pass) / sizeof(pass[0]);
	load.insns = (uint64_t)(uintptr_t)pass;
	load.license = (uint64_t)(uintptr_t)"Dual MIT/GPL";
	/* Else the kernel refuses it where the MTU needs more than a page. */
	load.prog_flags = BPF_F_XDP_HAS_FRAGS;
	strcpy(load.prog_name, PROGRAM_NAME);
	program = bpf(BPF_PROG_LOAD, &load);
	if (program == -EINVAL) {
		load.prog_flags = 0;
		program = bpf(BPF_PROG_LOAD, &load);
	}
	if (program < 0)
		return program;
	memset(&attach, 0, sizeof(attach));
	attach.link_create.prog_fd = (uint32_t)program;
	attach.link_create.target_ifindex = index;
	attach.link_create.attach_type = BPF_XDP;
	attach.link_create.flags = XDP_FLAGS_DRV_MODE;
	link = bpf(BPF_LINK_CREATE, &attach);
	close(program);
	return link;
}
