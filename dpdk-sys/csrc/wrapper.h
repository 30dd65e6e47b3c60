/* SPDX-License-Identifier: Apache-2.0 */
/* The one header bindgen reads. What it may take from here is listed in build.rs. */
#ifndef NPCC_DPDK_WRAPPER_H
#define NPCC_DPDK_WRAPPER_H

#include <errno.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_eth_ring.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_memory.h>
#include <rte_mempool.h>
#include <rte_ring.h>

#include "shim.h"

/*
 * Where the fields of struct rte_mbuf lie.
 *
 * Offsets, and not bindgen's own members: 24.03 moved several of them into anonymous unions,
 * which changes their path in a binding but not their place. The widths are asserted in shim.c.
 */
enum npcc_mbuf_offset {
	NPCC_MBUF_BUF_ADDR = offsetof(struct rte_mbuf, buf_addr),
	NPCC_MBUF_DATA_OFF = offsetof(struct rte_mbuf, data_off),
	NPCC_MBUF_REFCNT = offsetof(struct rte_mbuf, refcnt),
	NPCC_MBUF_NB_SEGS = offsetof(struct rte_mbuf, nb_segs),
	NPCC_MBUF_PORT = offsetof(struct rte_mbuf, port),
	NPCC_MBUF_OL_FLAGS = offsetof(struct rte_mbuf, ol_flags),
	NPCC_MBUF_PKT_LEN = offsetof(struct rte_mbuf, pkt_len),
	NPCC_MBUF_DATA_LEN = offsetof(struct rte_mbuf, data_len),
	NPCC_MBUF_VLAN_TCI = offsetof(struct rte_mbuf, vlan_tci),
	NPCC_MBUF_BUF_LEN = offsetof(struct rte_mbuf, buf_len),
	NPCC_MBUF_NEXT = offsetof(struct rte_mbuf, next),
	NPCC_MBUF_POOL = offsetof(struct rte_mbuf, pool),
};

/* Header fields to spread frames over receive queues by. A constant: the macros are casts. */
static const uint64_t NPCC_RSS_IP_UDP = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP;

/* Whether rte_eth_dev_configure shall prepare priority flow control. A constant: the macro is a cast. */
static const uint32_t NPCC_DCB_PFC = RTE_ETH_DCB_PFC_SUPPORT;

/* Whether sent buffers may go to their pool unread. A constant: the macro is a cast. */
static const uint64_t NPCC_TX_FAST_FREE = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;

#endif
