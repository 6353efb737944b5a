"""Settings of the project under ASGI."""

from project.settings import *  # noqa: F403

ROOT_URLCONF = "project.async_urls"
