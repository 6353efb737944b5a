"""The ASGI application, for example for ``uvicorn project.asgi:application``."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.async_settings")
application = get_asgi_application()
