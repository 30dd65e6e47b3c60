-- Stands in for pktgen-dpdk 23.06 when its scripts are tested: the calls they may make, and a device that passes CAPACITY
-- percent of a 100G link. A call or an argument pktgen does not know is an error.

local capacity = assert(tonumber(os.getenv("CAPACITY")), "CAPACITY is not set")
local state = { rate = 100, count = 0, ipackets = 0, opackets = 0, probes = 0, latency = {}, sending = false }
local per_ms_at_full = 10000

local function one_of(value, known, what)
    for _, name in ipairs(known) do
        if value == name then
            return
        end
    end
    error(what .. " does not know " .. tostring(value))
end

local function ports(list)
    assert(type(list) == "string", "a port list is text, not " .. type(list))
end

local function pass(frames)
    state.opackets = state.opackets + frames
    state.ipackets = state.ipackets + math.floor(frames * math.min(1, capacity / state.rate))
end

local calls = {}
function calls.screen(on) one_of(on, { "on", "off" }, "screen") end
function calls.clr() state.opackets, state.ipackets, state.probes = 0, 0, 0 end
function calls.set(list, what, value)
    ports(list)
    one_of(what, { "count", "size", "rate", "burst", "txburst", "rxburst", "sport", "dport", "ttl" }, "set")
    assert(type(value) == "number", "set takes a number")
    state[what] = value
end
function calls.set_type(list, what) ports(list) one_of(what, { "ipv4", "ipv6", "vlan", "arp" }, "set_type") end
function calls.set_proto(list, what) ports(list) one_of(what, { "udp", "tcp", "icmp" }, "set_proto") end
function calls.set_mac(list, side, mac)
    ports(list)
    one_of(side, { "src", "dst" }, "set_mac")
    assert(mac:match("^%x%x:%x%x:%x%x:%x%x:%x%x:%x%x$"), mac)
end
function calls.set_ipaddr(list, side, address)
    ports(list)
    one_of(side, { "src", "dst" }, "set_ipaddr")
    assert((address:match("/%d+$") ~= nil) == (side == "src"), "only the source has a mask: " .. address)
end
function calls.pcap(list, on) ports(list) one_of(on, { "on", "off" }, "pcap") end
function calls.latency(list, what, value)
    ports(list)
    one_of(what, { "enable", "disable", "rate", "entropy" }, "latency")
    state.latency[what] = value or true
end
function calls.start(list)
    ports(list)
    state.sending = true
    if state.count > 0 then
        pass(state.count)
        state.sending = false
    end
end
function calls.stop(list) ports(list) state.sending = false end
function calls.delay(ms)
    assert(type(ms) == "number")
    if state.sending then
        pass(math.floor(ms * per_ms_at_full * state.rate / 100))
        state.probes = state.probes + ms
    end
end
function calls.portStats(list, what)
    ports(list)
    one_of(what, { "port", "rate" }, "portStats")
    return { [tonumber(list)] = { opackets = state.opackets, ipackets = state.ipackets } }
end
function calls.pktStats(list)
    ports(list)
    assert(state.latency.enable, "latency is not enabled")
    return { [tonumber(list)] = { latency = { num_pkts = state.probes, min_us = 4.5, avg_us = 6.25, max_us = 31.0 } } }
end
function calls.linkState(list) ports(list) return { [tonumber(list)] = "<UP-100000-FD>" } end
function calls.isSending(list) ports(list) return { [tonumber(list)] = state.sending and "y" or "n" } end
function calls.quit() os.exit(0) end

pktgen = setmetatable({}, {
    __index = function(_, name)
        return calls[name] or error("pktgen has no " .. name, 2)
    end,
})
