/* SPDX-License-Identifier: Apache-2.0 */
/* A bus whose devices have PCI addresses of a domain that no machine here has: d0b1. They exist by their arguments alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_devargs.h>

#include "double.h"

#define DOMAIN 0xd0b1u

struct device {
	TAILQ_ENTRY(device) next;
	struct rte_device device;
};

static TAILQ_HEAD(, device) devices = TAILQ_HEAD_INITIALIZER(devices);
static struct rte_bus bus;

/* Accepts d0b1:BB:DD.F. */
static int parse(const char *name, void *address)
{
	unsigned int domain, number, device, function;
	int end = 0;

	if (sscanf(name, "%x:%x:%x.%x%n", &domain, &number, &device, &function, &end) != 4 || name[end] != '\0')
		return -EINVAL;
	if (domain != DOMAIN || number > 0xff || device > 0x1f || function > 7)
		return -EINVAL;
	if (address != NULL)
		*(uint32_t *)address = number << 8 | device << 3 | function;
	return 0;
}

static struct device *find(const char *name)
{
	struct device *one;

	TAILQ_FOREACH(one, &devices, next)
		if (strcmp(one->device.name, name) == 0)
			return one;
	return NULL;
}

static int scan(void)
{
	struct rte_devargs *arguments;

	RTE_EAL_DEVARGS_FOREACH("double", arguments) {
		struct device *one = find(arguments->name);

		if (one == NULL) {
			one = calloc(1, sizeof(*one));
			if (one == NULL)
				return -ENOMEM;
			one->device.bus = &bus;
			one->device.numa_node = SOCKET_ID_ANY;
			TAILQ_INSERT_TAIL(&devices, one, next);
		}
		one->device.devargs = arguments;
		one->device.name = arguments->name;
	}
	return 0;
}

static int plug(struct rte_device *device)
{
	if (rte_dev_is_probed(device))
		return -EEXIST;
	return double_probe(device, device->devargs == NULL ? "" : device->devargs->args);
}

/* Like the PCI bus: a card that cannot be used is logged, and only if none can be used is it an error. */
static int probe(void)
{
	struct device *one;
	int probed = 0, failed = 0;

	TAILQ_FOREACH(one, &devices, next) {
		int rc = plug(&one->device);

		probed++;
		if (rc != 0 && rc != -EEXIST) {
			DOUBLE_LOG(ERR, "requested device %s cannot be used: %s\n", one->device.name, strerror(-rc));
			rte_errno = -rc;
			failed++;
		}
	}
	return probed > 0 && probed == failed ? -1 : 0;
}

static int unplug(struct rte_device *device)
{
	struct device *one = container_of(device, struct device, device);
	int rc = double_remove(device);

	if (rc != 0)
		return rc;
	TAILQ_REMOVE(&devices, one, next);
	rte_devargs_remove(device->devargs);
	free(one);
	return 0;
}

static int cleanup(void)
{
	struct device *one, *following;
	int error = 0;

	RTE_TAILQ_FOREACH_SAFE(one, &devices, next, following) {
		if (rte_dev_is_probed(&one->device) && double_remove(&one->device) != 0)
			error = -1;
		TAILQ_REMOVE(&devices, one, next);
		free(one);
	}
	return error;
}

static struct rte_device *find_device(const struct rte_device *start, rte_dev_cmp_t compare, const void *data)
{
	struct device *one = start == NULL ? TAILQ_FIRST(&devices)
					   : TAILQ_NEXT(container_of(start, struct device, device), next);

	for (; one != NULL; one = TAILQ_NEXT(one, next))
		if (compare(&one->device, data) == 0)
			return &one->device;
	return NULL;
}

static enum rte_iova_mode iommu_class(void)
{
	return RTE_IOVA_DC;
}

static struct rte_bus bus = {
	.scan = scan,
	.probe = probe,
	.cleanup = cleanup,
	.find_device = find_device,
	.plug = plug,
	.unplug = unplug,
	.parse = parse,
	.get_iommu_class = iommu_class,
};

RTE_REGISTER_BUS(double, bus);
RTE_LOG_REGISTER(double_logtype, bus.double, NOTICE);
