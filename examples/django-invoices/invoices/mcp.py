"""The MCP server with the services and selectors that a model may use."""

from rest_framework.permissions import IsAuthenticated
from rest_framework_services import SelectorKind, SelectorSpec, ServiceSpec

from invoices import services
from invoices.filters import InvoiceFilter
from invoices.serializers import CustomerInput, DoubleInput, InvoiceInput, InvoiceOutput, StatusInput
from mcpace.django import DjangoPermRequired, MCPServer

server = MCPServer("invoices", instructions="Invoices of a small company. Amounts are in euros.")

SHOWN = SelectorSpec(kind=SelectorKind.RETRIEVE, output_serializer=InvoiceOutput)
BY_NUMBER = SelectorSpec(kind=SelectorKind.RETRIEVE, selector=services.invoice_by_number)


server.register_service_tool(
    name="invoices.create",
    spec=ServiceSpec(
        service=services.create_invoice,
        input_serializer=InvoiceInput,
        output_selector_spec=SHOWN,
        permission_classes=[IsAuthenticated],
    ),
    permissions=[DjangoPermRequired("invoices.add_invoice")],
    rate_limits=["60/minute"],
)

server.register_service_tool(
    name="invoices.set_status",
    spec=ServiceSpec(
        service=services.set_status,
        instance_selector_spec=BY_NUMBER,
        input_serializer=StatusInput,
        output_selector_spec=SHOWN,
        permission_classes=[IsAuthenticated],
        idempotent=True,
    ),
)

server.register_service_tool(
    name="customers.add",
    spec=ServiceSpec(
        service=services.add_customer, input_serializer=CustomerInput, permission_classes=[IsAuthenticated]
    ),
)

server.register_selector_tool(
    name="invoices.list",
    spec=SelectorSpec(
        kind=SelectorKind.LIST,
        selector=services.all_invoices,
        output_serializer=InvoiceOutput,
        select_related=["customer"],
        prefetch_related=["lines"],
        filter_set=InvoiceFilter,
        permission_classes=[IsAuthenticated],
    ),
    paginate=True,
    ordering_fields=["number", "due"],
)

server.register_service_tool(
    name="double",
    description="Twice as much: for a first try, and for measuring. Anybody may.",
    spec=ServiceSpec(service=services.double, input_serializer=DoubleInput, atomic=False, permission_classes=[]),
)

server.register_resource(
    name="invoice",
    uri_template="invoices://{number}",
    selector=SelectorSpec(
        kind=SelectorKind.RETRIEVE,
        selector=services.invoice_by_number,
        output_serializer=InvoiceOutput,
        permission_classes=[IsAuthenticated],
    ),
)


def reminder(number: str) -> str:
    """Asks for a friendly reminder of an invoice."""
    return f"Write a friendly reminder that invoice {number} is due. Read invoices://{number} first."


server.register_prompt(name="reminder", render=reminder)
