/* SPDX-License-Identifier: Apache-2.0 */
/* MTU of a kernel interface by its index. By a socket, as /sys may show another network namespace. */
#include <errno.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shim.h"

int npcc_interface_mtu(uint32_t index)
{
	struct ifreq request = {.ifr_ifindex = (int)index};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int rc;

	if (fd < 0)
		return -errno;
	/* ifr_name, which the first call fills in, names the interface of the second. */
	rc = ioctl(fd, SIOCGIFNAME, &request) < 0 || ioctl(fd, SIOCGIFMTU, &request) < 0 ? -errno : request.ifr_mtu;
	close(fd);
	return rc;
}
