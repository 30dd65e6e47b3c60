// Reaction point of DCQCN for soft-RoCE, which ignores CNPs: two programs on a guest's interface.
//
// `ingress` reads what comes in: an acknowledgement shows to which own queue pair a UDP source port belongs (both directions of a connection
// use the same port), and a CNP cuts the rate of the queue pair that it names. `egress` gives each packet of a queue pair with a rate its
// earliest departure time, which the qdisc fq keeps. rxe stops to produce while 64 packets of a queue pair wait, so nothing is dropped.
//
// The law is that of the paper (SIGCOMM 2015), with rates in bytes a second; timers are evaluated when a packet leaves or a CNP comes.
// Times and rates come from the compiler's command line: the rig runs everything SCALE times slower than the 40G network of the paper.
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define LINE (40000000000ULL / 8 / SCALE)
#define LEAST (LINE / 200)
#define ADDITIVE (40000000ULL / 8 / SCALE)
#define HYPER (10 * ADDITIVE)
#define TIMER (55000ULL * SCALE)
#define BYTES 10000000ULL
#define ALPHA_TIMER (55000ULL * SCALE)
#define RECOVERY 5
#define ONE (1ULL << 20)
#define G_SHIFT 8
// Most events of a timer that are caught up with at once: later ones change nothing that can be seen.
#define CATCH_UP 32

#define IP_AT 14
#define UDP_AT (IP_AT + 20)
#define BTH_AT (UDP_AT + 8)
#define ROCE 4791
#define CNP 0x81
#define ACK 0x11
#define READ_RESPONSE_FIRST 0x0d

struct rate {
    __u64 current, target;
    __u64 alpha;
    __u64 alpha_at, timer_at, bytes;
    __u64 timers, counters;
    __u64 next;
    // Counts for the rig.
    __u64 cnps, sent, least, delayed;
};

struct way {
    __u32 peer;
    __u32 port;
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1024);
    __type(key, struct way);
    __type(value, __u32);
    __uint(pinning, LIBBPF_PIN_BY_NAME);
} queue_pairs SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1024);
    __type(key, __u32);
    __type(value, struct rate);
    __uint(pinning, LIBBPF_PIN_BY_NAME);
} rates SEC(".maps");

// The network layer's addresses and the headers that follow.
struct headers {
    __u32 src, dst;
    __u16 sport, dport;
    __u8 opcode;
    __u32 qpn;
};

static __always_inline int parse(struct __sk_buff *skb, struct headers *found)
{
    __u8 frame[BTH_AT + 12];

    if (skb->protocol != bpf_htons(0x0800) || bpf_skb_load_bytes(skb, 0, frame, sizeof(frame)))
        return 0;
    if (frame[IP_AT] != 0x45 || frame[IP_AT + 9] != 17)
        return 0;
    __builtin_memcpy(&found->src, frame + IP_AT + 12, 4);
    __builtin_memcpy(&found->dst, frame + IP_AT + 16, 4);
    found->sport = frame[UDP_AT] << 8 | frame[UDP_AT + 1];
    found->dport = frame[UDP_AT + 2] << 8 | frame[UDP_AT + 3];
    found->opcode = frame[BTH_AT];
    found->qpn = frame[BTH_AT + 5] << 16 | frame[BTH_AT + 6] << 8 | frame[BTH_AT + 7];
    return found->dport == ROCE;
}

static __always_inline void increase(struct rate *rate)
{
    __u64 most = rate->timers > rate->counters ? rate->timers : rate->counters;
    __u64 least = rate->timers < rate->counters ? rate->timers : rate->counters;

    if (least > RECOVERY)
        rate->target += HYPER;
    else if (most > RECOVERY)
        rate->target += ADDITIVE;
    if (rate->target > LINE)
        rate->target = LINE;
    rate->current = (rate->current + rate->target) / 2;
}

static __always_inline void decay(struct rate *rate, __u64 now)
{
    for (int event = 0; event < CATCH_UP && now - rate->alpha_at >= ALPHA_TIMER; event++) {
        rate->alpha -= rate->alpha >> G_SHIFT;
        rate->alpha_at += ALPHA_TIMER;
    }
}

SEC("ingress")
int on_ingress(struct __sk_buff *skb)
{
    struct headers in;
    struct rate *rate;
    __u64 now = bpf_ktime_get_ns();

    if (!parse(skb, &in))
        return TC_ACT_OK;
    if (in.opcode == ACK || in.opcode == READ_RESPONSE_FIRST) {
        struct way way = { in.src, in.sport };

        if (!bpf_map_lookup_elem(&queue_pairs, &way))
            bpf_map_update_elem(&queue_pairs, &way, &in.qpn, BPF_ANY);
        return TC_ACT_OK;
    }
    if (in.opcode != CNP)
        return TC_ACT_OK;
    rate = bpf_map_lookup_elem(&rates, &in.qpn);
    if (!rate) {
        // The first CNP of a queue pair: it sends at line rate, and alpha is 1.
        struct rate first = { .current = LINE, .target = LINE, .alpha = ONE, .alpha_at = now, .timer_at = now, .least = LINE };

        bpf_map_update_elem(&rates, &in.qpn, &first, BPF_ANY);
        rate = bpf_map_lookup_elem(&rates, &in.qpn);
        if (!rate)
            return TC_ACT_SHOT;
    }
    decay(rate, now);
    rate->target = rate->current;
    rate->current -= rate->current * (rate->alpha / 2) / ONE;
    if (rate->current < LEAST)
        rate->current = LEAST;
    rate->alpha += (ONE - rate->alpha) >> G_SHIFT;
    rate->alpha_at = rate->timer_at = now;
    rate->timers = rate->counters = rate->bytes = 0;
    rate->cnps++;
    if (rate->current < rate->least)
        rate->least = rate->current;
    // rxe has no use for it.
    return TC_ACT_SHOT;
}

SEC("egress")
int on_egress(struct __sk_buff *skb)
{
    struct headers out;
    struct rate *rate;
    __u32 *qpn;
    __u64 now = bpf_ktime_get_ns();

    if (!parse(skb, &out))
        return TC_ACT_OK;
    // Acknowledgements are not data, and are not paced.
    if (out.opcode == ACK)
        return TC_ACT_OK;
    struct way way = { out.dst, out.sport };
    qpn = bpf_map_lookup_elem(&queue_pairs, &way);
    rate = qpn ? bpf_map_lookup_elem(&rates, qpn) : 0;
    if (!rate)
        return TC_ACT_OK;
    decay(rate, now);
    for (int event = 0; event < CATCH_UP && now - rate->timer_at >= TIMER; event++) {
        rate->timer_at += TIMER;
        rate->timers++;
        increase(rate);
    }
    rate->bytes += skb->len;
    if (rate->bytes >= BYTES) {
        rate->bytes -= BYTES;
        rate->counters++;
        increase(rate);
    }
    if (rate->next < now)
        rate->next = now;
    else
        rate->delayed++;
    skb->tstamp = rate->next;
    rate->next += skb->len * 1000000000ULL / rate->current;
    rate->sent += skb->len;
    return TC_ACT_OK;
}

char _license[] SEC("license") = "GPL";
